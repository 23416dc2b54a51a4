package ownthread

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// Functions have threads of their own, however many there are, and never the
// process's first; the threads end, but for those that are given back.
func TestRun(t *testing.T) {
	const many = 200
	var all sync.WaitGroup
	begun, end := make(chan int, many), make(chan struct{})
	for i := range many {
		all.Go(func() {
			Run(func() {
				begun <- syscall.Gettid()
				<-end
				if i%2 == 0 {
					runtime.UnlockOSThread()
				}
			})
		})
	}
	threads := map[int]bool{os.Getpid(): true}
	for range many {
		tid := <-begun
		if threads[tid] {
			t.Fatalf("thread %d of process %d is used twice, or is the first", tid, os.Getpid())
		}
		threads[tid] = true
	}
	close(end)
	all.Wait()
	for until := time.Now().Add(testwait.Limit); ; time.Sleep(time.Millisecond) {
		left := 0
		for tid := range threads {
			if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid)); err == nil {
				left++
			}
		}
		if left <= many/2+1 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d of %d threads are left", left, len(threads))
		}
	}
	if err := Do(func() error { return os.ErrClosed }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v", err)
	}
}
