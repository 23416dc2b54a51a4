package southbound

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// watch looks which switches have sent something, reads it, and has echoes
// answered, before the goroutines of their sessions get to them: near saturation
// these wait for each other, and Go's scheduler knows no priorities. It looks
// whenever the runtime finds something to read, and between packet-ins, on the
// goroutine that deals with them, once lookEvery is over. Before its first
// connection it has no epoll instance.
type watch struct {
	opened chan struct{} // closed when there is an epoll instance
	last   atomic.Int64
	some   atomic.Bool // there are members

	mu      sync.Mutex // guards what follows, and who looks
	over    bool
	file    *os.File // of the epoll instance, so that the runtime waits for it; nil before it is opened
	epoll   int
	members map[int32]*early
	next    int32
	events  []unix.EpollEvent
}

// lookEvery is how long echoes may wait for packet-ins: less would read in
// smaller pieces, which costs more.
const lookEvery = 2 * time.Millisecond

// lookPackets is after how many messages it is looked at the time.
const lookPackets = 16

func newWatch() *watch {
	return &watch{opened: make(chan struct{}), members: map[int32]*early{}, events: make([]unix.EpollEvent, 256)}
}

// open makes the epoll instance; it is called with the lock.
func (w *watch) open() error {
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

// add has a connection looked after.
func (w *watch) add(e *early) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return net.ErrClosed
	}
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	for w.next++; w.members[w.next] != nil; w.next++ {
	}
	id := w.next
	var failed error
	err := e.raw.Control(func(fd uintptr) {
		failed = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: id})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	e.id = id
	w.members[id] = e
	w.some.Store(true)
	return nil
}

// remove has a connection looked after no more; one that is closed epoll has
// forgotten by itself.
func (w *watch) remove(e *early) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	delete(w.members, e.id)
	w.some.Store(len(w.members) > 0)
	_ = e.raw.Control(func(fd uintptr) { _ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, int(fd), nil) })
}

// busy reports whether there is anybody to look after.
func (w *watch) busy() bool { return w != nil && w.some.Load() }

// tick looks if it is time and nobody else does.
func (w *watch) tick(now int64) {
	if !w.busy() || now-w.last.Load() < int64(lookEvery) || !w.mu.TryLock() {
		return
	}
	w.look(now)
	w.mu.Unlock()
}

// look takes what has come; mu is held.
func (w *watch) look(now int64) {
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
				e.look(now, w.events[i].Events)
			}
		}
		if n < len(w.events) {
			return
		}
	}
}

// close ends the watch.
func (w *watch) close() {
	w.mu.Lock()
	w.over = true
	file := w.file
	w.mu.Unlock()
	if file != nil {
		file.Close() // without the lock: it waits for who looks
	}
}

// run looks when something comes, until ctx ends.
func (w *watch) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, w.close)()
	select {
	case <-w.opened:
	case <-ctx.Done():
		w.close()
		return nil
	}
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	err = raw.Read(func(uintptr) bool {
		w.mu.Lock()
		w.look(time.Now().UnixNano())
		w.mu.Unlock()
		return false
	})
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("southbound: epoll: %w", err)
}
