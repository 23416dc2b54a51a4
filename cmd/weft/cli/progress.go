package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress tells what is being done, on stderr, once it has taken two
// seconds and again when it changes.
type Progress struct {
	mu     sync.Mutex
	w      io.Writer
	what   string
	loud   bool
	timer  *time.Timer
	start  time.Time
	closed bool
}

func NewProgress(w io.Writer) *Progress {
	p := &Progress{w: w, start: time.Now()}
	p.timer = time.AfterFunc(2*time.Second, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.loud = true
		p.say()
	})
	return p
}

func (p *Progress) Doing(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what = what
	if p.loud {
		p.say()
	}
}

// say writes the current line; mu is held.
func (p *Progress) say() {
	if p.what != "" && !p.closed {
		fmt.Fprintf(p.w, "%s … (%.0f s)\n", p.what, time.Since(p.start).Seconds())
	}
}

func (p *Progress) Stop() {
	p.timer.Stop()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
}
