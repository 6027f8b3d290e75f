// Package certificate manages the certificate of the webhooks: an authority and a serving certificate in one Secret
// that all replicas share, renewed while the controller runs, and the authority's certificate in the webhook
// configurations, by which the API server verifies the webhooks.
//
// The due renewals are a function of the Secret's data and an instant (Judge). Keeper does the I/O.
//
// It is our own and not cert-controller's, which serves only files that a kubelet has mounted, replaces the old
// authority at once, so that replicas with the old certificate are not trusted, and lists and watches every Secret of
// its namespace.
package certificate
