package hosts

import (
	"math"
	"time"
)

// A deadline is the time before which there is nothing to do.
type deadline int64

// moveUp sets a deadline to t if t is earlier.
func (d *deadline) moveUp(t int64) { *d = min(*d, deadline(t)) }

// hasPassed reports whether a deadline has passed; if so it clears it.
func (d *deadline) hasPassed(now int64) bool {
	if now < int64(*d) {
		return false
	}
	*d = math.MaxInt64
	return true
}

// now returns the time in nanoseconds since 1970.
func now() int64 { return time.Now().UnixNano() }
