package deploy

import "slices"

// Effective returns the configuration that a service runs with: its Spec's with
// the settings made. It is nil if the service does not run or has none. Nobody
// writes to it.
func (w *Worker) Effective(service string) any {
	if s := w.tables.Load().service(service); s != nil {
		return s.configured()
	}
	return nil
}

// Pipeline returns the names of the stages in order.
func (w *Worker) Pipeline() []string { return slices.Clone(w.tables.Load().pipeline) }
