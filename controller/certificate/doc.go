// Package certificate keeps the certificate of the webhooks: an authority and a serving certificate in one Secret that
// all replicas share, renewed while the controller runs, and the authority's certificate in the webhook configurations,
// by which the API server knows us.
//
// What is due is a function of the Secret's data and an instant (Judge). Keeper is the edge around it.
//
// It is our own and not cert-controller's, which serves only what a kubelet has mounted as files, puts a new authority
// in the place of the old one at once, so that replicas which still serve the old certificate are not believed, and
// lists and watches every Secret of its namespace.
package certificate
