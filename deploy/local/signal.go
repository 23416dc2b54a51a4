package local

// Signal wakes one goroutine that waits for work. It keeps one notification.
type Signal chan struct{}

// NewSignal returns a Signal.
func NewSignal() Signal { return make(chan struct{}, 1) }

// Notify wakes the goroutine, now or when it waits next.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}
