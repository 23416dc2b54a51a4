package shm

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// window is how long a reader looks out for what is due before it sleeps: less
// than the doorbell and a change of processes take together would be of no use.
const window = 50 * time.Microsecond

// maxSkip bounds how many times a reader sleeps at once after it has looked out
// in vain.
const maxSkip = 15

// maxPolls bounds how many times in a row a reader looks out with success. Then
// it sleeps once, so that Go's runtime comes to look after other sockets though
// this process has a single processor.
const maxPolls = 16

// poll looks out for octets in a ring while that has been worth it lately.
type poll struct {
	skip   int // times to go without
	failed int // how many of these the last failure has brought
	polls  int // successes since the reader last slept
}

// wait looks out for a moment and reports whether there is something to read.
// Others may run meanwhile: other goroutines of this process, and, if the
// processor is shared, the peer.
func (p *poll) wait(r *ring) bool {
	if p.polls == maxPolls {
		p.polls = 0
		return false
	}
	if p.skip > 0 {
		p.skip--
		return false
	}
	for began := time.Now(); ; {
		for range 4 {
			runtime.Gosched()
			if n, err := r.filled(); n > 0 || err != nil {
				p.failed = 0
				p.polls++
				return true
			}
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // never fails
		}
		if time.Since(began) > window {
			p.failed = min(2*p.failed+1, maxSkip)
			p.skip = p.failed
			return false
		}
	}
}
