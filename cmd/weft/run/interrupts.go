package run

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// interrupts are the signals by which people end a controller: the first ends it, the
// second has it hurry, the next ends the process at once.
type interrupts struct {
	hurry chan struct{} // closed by the second
	keeps atomic.Bool   // processes are kept: they have to end first
}

// newInterrupts returns the interrupts, and a context that ends at the first. quit ends the
// process at the second if there is no other that has to end first. stop gives the signals
// back.
func newInterrupts(quit func(os.Signal)) (i *interrupts, ctx context.Context, stop func()) {
	i = &interrupts{hurry: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	signals, ended := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		defer signal.Stop(signals)
		select {
		case <-signals:
			cancel()
		case <-ended:
			return
		}
		select {
		case s := <-signals:
			close(i.hurry)
			signal.Stop(signals)
			if !i.keeps.Load() {
				quit(s)
			}
		case <-ended:
		}
	}()
	return i, ctx, func() { close(ended); cancel() }
}

// dieOf ends the process as a signal does that it does not handle.
func dieOf(s os.Signal) { _ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) }
