package run

import (
	"fmt"
	"syscall"
)

// fewestFiles is the limit of open files below which no process of the
// controller starts: the store, the other processes and a quarter for the
// northbound's clients need about 150, each switch another one.
const fewestFiles = 256

// enoughFiles returns an error if this process may open too few files. Go has
// raised the soft limit to the hard one when the program started.
func enoughFiles() error {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return nil // it is not known; opening a file says so
	}
	return checkFiles(limit.Cur)
}

func checkFiles(limit uint64) error {
	if limit >= fewestFiles {
		return nil
	}
	return fmt.Errorf("this process may open %d files at once, which is too few for the store and the northbound: at least %d are needed, and one more for each switch and client; raise the limit (ulimit -n 65536, systemd: LimitNOFILE=65536) and start again", limit, fewestFiles)
}
