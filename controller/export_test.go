package controller

// NewWebhooks builds the webhook server as Run does, without a manager.
var NewWebhooks = newWebhooks

// What the status server is told, as Run does it.
var (
	StatusServerURL  = statusServerURL
	CertificateFiles = certificateFiles
)

// ServesState says whether the API server knows FrozenTrainJobs.
var ServesState = servesState
