package run

import (
	"os"
	"syscall"
	"testing"
)

// TestInterrupts: the first signal ends the context, the second closes hurry, and ends the
// process at once only if it keeps no others.
func TestInterrupts(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		died := make(chan os.Signal, 1)
		i, ctx, stop := newInterrupts(func(s os.Signal) { died <- s })
		i.keeps.Store(keeps)
		kill := func() {
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		kill()
		<-ctx.Done()
		select {
		case <-i.hurry:
			t.Error("the first signal is taken for two")
		default:
		}
		kill()
		<-i.hurry
		if !keeps {
			if s := <-died; s != syscall.SIGTERM {
				t.Errorf("it ends by %v", s)
			}
		}
		stop()
		if keeps && len(died) > 0 {
			t.Error("it does not wait for the processes that it keeps")
		}
	}
}
