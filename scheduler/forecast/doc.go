// Package forecast predicts the durations of runs from those of earlier ones of the same kind. It is pure: values in,
// values out, integers only, so that the scheduler and the simulator predict the same on every machine.
//
//	history := forecast.New()
//	history.Ended(key, 5400)
//	bound, ok := history.Of(key).Quantile(900, 0)
//
// A run belongs to a class of its own (Key) and to broader ones, up to that of all runs. Each class counts run times in
// buckets of a quarter of an octave; a count loses half its weight within about 64 later runs of the class. A
// prediction mixes the classes from the broadest to the narrowest: a class with n runs weighs n, the broader ones
// together weigh as eight runs. The broadest two are of all namespaces, in which each weighs as eight runs at most.
//
// Starts forecasts waits as intervals, from a point estimate (Backlog), from the waits of others, and from the errors
// of earlier forecasts.
package forecast
