package report

type (
	runData     struct{}
	scatterData struct{}
)
