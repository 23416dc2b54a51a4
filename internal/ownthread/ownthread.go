// Package ownthread runs functions on operating-system threads of their own, for
// what Linux changes of a thread alone: its namespaces, its user. It imports the
// standard library only.
package ownthread

import (
	"os"
	"runtime"
	"syscall"
)

// Run runs f on a thread that ends with f, so that f's changes to the thread do not
// outlast it. It never uses the process's first thread: that one cannot end, and its
// namespaces are those that /proc/PID names, by which others judge where the process
// runs. f may call runtime.UnlockOSThread once it has taken all changes back: then
// the thread does not end, which is quicker.
func Run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			Run(f) // elsewhere, because this goroutine keeps the first thread meanwhile
			return
		}
		f()
	}()
	<-done
}

// Do is Run for a function that may fail.
func Do(f func() error) (err error) {
	Run(func() { err = f() })
	return err
}
