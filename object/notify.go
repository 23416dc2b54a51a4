package object

// Notify wakes the goroutine that receives from c, whose capacity is one. If a
// notification waits for it already, it does nothing.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
