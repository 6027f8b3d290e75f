package controller

// NewWebhooks builds the webhook server as Run does, without a manager.
var NewWebhooks = newWebhooks
