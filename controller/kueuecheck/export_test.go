package kueuecheck

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Answer reconciles a Workload.
func Answer(ctx context.Context, c *Controller, request ctrl.Request) (ctrl.Result, error) {
	return c.answer(ctx, request)
}

// Activate reconciles an AdmissionCheck.
func Activate(ctx context.Context, c *Controller, request ctrl.Request) (ctrl.Result, error) {
	return c.activate(ctx, request)
}
