package deploy

// Effective returns the configuration that a service runs with: its Spec's with
// the settings made. It is nil if the service does not run or has none. Nobody
// writes to it.
func (w *Worker) Effective(service string) any {
	for _, s := range w.services {
		if s.spec.Name == service {
			return s.config
		}
	}
	return nil
}

// Pipeline returns the names of the stages in order.
func (w *Worker) Pipeline() []string {
	var names []string
	for _, s := range w.pipeline {
		names = append(names, s.spec.Name)
	}
	return names
}
