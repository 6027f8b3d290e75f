package trainjob

// Reminded is the number of jobs that the reconciler remembers to remind.
func (r *Reconciler) Reminded() int {
	r.reminders.mu.Lock()
	defer r.reminders.mu.Unlock()
	return len(r.reminders.told)
}
