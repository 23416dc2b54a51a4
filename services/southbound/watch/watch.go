// Package watch finds the switches that have sent something before the
// goroutines of their sessions run (decision 11): an epoll instance that anybody
// may look at.
//
// Only services/southbound and the packages below it import it.
package watch

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watch finds the switches that have sent something, reads from them and
// answers their echoes before the goroutines of their sessions run: near
// saturation these wait for each other, and Go's scheduler knows no priorities.
// It looks whenever the runtime finds something to read, and between
// packet-ins, on the goroutine that handles them, once lookEvery is over. It
// opens no epoll instance before its first connection.
type Watch struct {
	opened chan struct{} // closed when there is an epoll instance
	last   atomic.Int64
	some   atomic.Bool // there are members

	mu      sync.Mutex // guards what follows; held while looking
	over    bool
	file    *os.File // the epoll instance, so that the runtime waits for it; nil until open
	epoll   int
	members map[int32]Member
	next    int32
	events  []unix.EpollEvent
}

// Member is a connection that is watched. Look is called, one call at a time,
// when something has arrived; events are those of epoll.
type Member interface {
	Look(now int64, events uint32)
}

// lookEvery is how long echoes may wait for packet-ins: less would read in
// smaller pieces, which costs more.
const lookEvery = 2 * time.Millisecond

func New() *Watch {
	return &Watch{opened: make(chan struct{}), members: map[int32]Member{}, events: make([]unix.EpollEvent, 256)}
}

// open makes the epoll instance. The caller holds the lock.
func (w *Watch) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("southbound: epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return fmt.Errorf("southbound: epoll: %w", err)
	}
	w.file, w.epoll = os.NewFile(uintptr(fd), "epoll"), fd
	close(w.opened)
	return nil
}

// Add starts watching a connection, and returns its id.
func (w *Watch) Add(raw syscall.RawConn, m Member) (id int32, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return 0, net.ErrClosed
	}
	if w.file == nil {
		if err := w.open(); err != nil {
			return 0, err
		}
	}
	for w.next++; w.members[w.next] != nil; w.next++ {
	}
	id = w.next
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: id})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, err
	}
	w.members[id] = m
	w.some.Store(true)
	return id, nil
}

// Remove stops watching a connection. epoll forgets a closed one by itself.
func (w *Watch) Remove(raw syscall.RawConn, id int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	delete(w.members, id)
	w.some.Store(len(w.members) > 0)
	_ = raw.Control(func(fd uintptr) { _ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, int(fd), nil) })
}

// Busy reports whether any connection is watched.
func (w *Watch) Busy() bool { return w != nil && w.some.Load() }

// Tick looks if it is time to and nobody else is looking.
func (w *Watch) Tick(now int64) {
	if !w.Busy() || now-w.last.Load() < int64(lookEvery) || !w.mu.TryLock() {
		return
	}
	w.readArrived(now)
	w.mu.Unlock()
}

// readArrived reads what has arrived; mu is held.
func (w *Watch) readArrived(now int64) {
	w.last.Store(now)
	for !w.over {
		n, err := epollNow(w.epoll, w.events)
		if err == unix.EINTR {
			continue
		}
		if err != 0 {
			return
		}
		for i := range w.events[:n] {
			if e := w.members[w.events[i].Fd]; e != nil {
				e.Look(now, w.events[i].Events)
			}
		}
		if n < len(w.events) {
			return
		}
	}
}

// Close ends the watch.
func (w *Watch) Close() {
	w.mu.Lock()
	w.over = true
	file := w.file
	w.mu.Unlock()
	if file != nil {
		file.Close() // without the lock: Close waits for the goroutine that looks
	}
}

// Run looks whenever something arrives, and calls then afterwards, until ctx
// ends.
func (w *Watch) Run(ctx context.Context, then func(now time.Time)) error {
	defer context.AfterFunc(ctx, w.Close)()
	select {
	case <-w.opened:
	case <-ctx.Done():
		w.Close()
		return nil
	}
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	err = raw.Read(func(uintptr) bool {
		now := time.Now()
		w.mu.Lock()
		w.readArrived(now.UnixNano())
		w.mu.Unlock()
		then(now)
		return false
	})
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("southbound: epoll: %w", err)
}

// epollNow is epoll_wait(2) with a timeout of 0. It does not report to Go's
// scheduler that the thread is in the kernel (see session/syscall.go).
func epollNow(epoll int, events []unix.EpollEvent) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if err != 0 {
		return 0, err
	}
	return int(n), 0
}
