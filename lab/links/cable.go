package links

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
)

// Cables carries the frames of every link with delay, or with a host's VLAN
// tag, between its two TAP devices, each after its delay and in order. One
// thread does it all, woken by frames and by a timer good to microseconds; the
// Go runtime's own timers are good to a millisecond.
type Cables struct {
	epoll, timer, wake int
	done               chan struct{}

	mu     sync.Mutex // guards what follows; the thread holds it while it works
	byWire map[int]*cable
	lanes  []*lane // by the index epoll reports
	busy   []*lane // those with frames under way
	free   [][]byte
	room   int // of a buffer: the longest frame of any cable, and its tag
	closed bool
}

type cable struct {
	taps          [2]tap
	delay, jitter time.Duration
	up            bool
	vlan          uint16 // tag on the wire at end 0, none at end 1; 0: leave frames alone
}

// lane is one direction of a cable.
type lane struct {
	cable *cable
	from  int // index of the TAP device it reads
	queue []frame
	head  int
}

type frame struct {
	due time.Duration // on the monotonic clock
	buf []byte        // begins with tagRoom spare bytes
}

const (
	tagRoom   = 4
	maxQueue  = 20_000 // frames under way in one direction; more are lost
	readBatch = 64
	timerID   = -1
	wakeID    = -2
)

func NewCables() (*Cables, error) {
	c := &Cables{byWire: map[int]*cable{}, done: make(chan struct{}), epoll: -1, timer: -1, wake: -1}
	var err error
	if c.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		if c.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err == nil {
			c.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		}
	}
	if err == nil {
		err = errors.Join(c.watch(c.timer, timerID), c.watch(c.wake, wakeID))
	}
	if err != nil {
		return nil, fmt.Errorf("prepare cables: %w", err)
	}
	go c.run()
	return c, nil
}

func (c *Cables) watch(fd int, id int32) error {
	return unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: id})
}

// Lay makes the two TAP devices of a wire and begins to carry frames.
func (c *Cables) Lay(w *layout.Wire) error {
	k := &cable{delay: time.Duration(w.Shape.Delay), jitter: time.Duration(w.Shape.Jitter), up: w.State != layout.LinkIsDown, vlan: w.VLAN}
	for i, e := range w.Ends() {
		t, err := openTap(e)
		if err != nil {
			if i == 1 {
				k.taps[0].close()
			}
			return fmt.Errorf("lay a cable from %s to %s: %w", &w.A, &w.B, err)
		}
		k.taps[i] = t
	}
	for _, t := range k.taps {
		if err := t.setCarrier(k.up); err != nil {
			return err
		}
	}
	return c.carry(w.ID, k, w.MTU())
}

// carry begins to carry the frames of a cable whose devices are open.
func (c *Cables) carry(wire int, k *cable, mtu int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byWire[wire] != nil {
		return fmt.Errorf("the cable from %s to %s is laid already", k.taps[0].name, k.taps[1].name)
	}
	c.byWire[wire] = k
	if room := mtu + 64; room > c.room { // Ethernet header, tags
		c.room, c.free = room, nil
	}
	for i := range k.taps {
		at := slices.Index(c.lanes, nil) // of a cable that is gone
		if at < 0 {
			at = len(c.lanes)
			c.lanes = append(c.lanes, nil)
		}
		c.lanes[at] = &lane{cable: k, from: i}
		if err := c.watch(k.taps[i].fd, int32(at)); err != nil {
			return fmt.Errorf("watch %s: %w", k.taps[i].name, err)
		}
	}
	return nil
}

// Set changes a cable; frames under way keep the time they are due at, and
// are lost if the cable is unplugged.
func (c *Cables) Set(wire int, delay, jitter time.Duration, up bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.byWire[wire]
	if k == nil {
		return fmt.Errorf("wire %d is not a cable", wire)
	}
	k.delay, k.jitter = delay, jitter
	if up == k.up {
		return nil
	}
	k.up = up
	return errors.Join(k.taps[0].setCarrier(up), k.taps[1].setCarrier(up))
}

// Remove removes a cable, if there is one, with the frames under way.
func (c *Cables) Remove(wire int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.byWire[wire]
	if k == nil {
		return
	}
	delete(c.byWire, wire)
	for i, l := range c.lanes {
		if l != nil && l.cable == k {
			c.lanes[i] = nil
		}
	}
	c.busy = slices.DeleteFunc(c.busy, func(l *lane) bool { return l.cable == k })
	k.taps[0].close() // epoll forgets them
	k.taps[1].close()
}

// Close ends the thread and removes every TAP device.
func (c *Cables) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	_, _ = unix.Write(c.wake, binary.NativeEndian.AppendUint64(nil, 1))
	<-c.done
	for _, k := range c.byWire {
		k.taps[0].close()
		k.taps[1].close()
	}
	unix.Close(c.epoll)
	unix.Close(c.timer)
	unix.Close(c.wake)
}

func (c *Cables) run() {
	runtime.LockOSThread()
	defer close(c.done)
	var events [64]unix.EpollEvent
	var scratch [8]byte
	for {
		n, err := unix.EpollWait(c.epoll, events[:], -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return
		}
		for i := range max(n, 0) {
			switch id := events[i].Fd; id {
			case timerID:
				_, _ = unix.Read(c.timer, scratch[:])
			case wakeID:
				_, _ = unix.Read(c.wake, scratch[:])
			default:
				if l := c.lanes[id]; l != nil {
					c.read(l)
				}
			}
		}
		c.deliver()
		c.mu.Unlock()
	}
}

// read takes in the frames waiting at a lane's device.
func (c *Cables) read(l *lane) {
	k := l.cable
	for range readBatch {
		buf := c.buffer()
		n, err := unix.Read(k.taps[l.from].fd, buf[tagRoom:])
		if err != nil || n < 14 {
			c.free = append(c.free, buf)
			return
		}
		out, ok := k.retag(buf[:tagRoom+n], l.from)
		if !ok || !k.up || len(l.queue)-l.head >= maxQueue {
			c.free = append(c.free, buf)
			continue
		}
		due := machine.Monotonic() + k.delay
		if k.jitter > 0 {
			due += rand.N(k.jitter)
		}
		if len(l.queue) > l.head {
			due = max(due, l.queue[len(l.queue)-1].due) // never overtake
		} else {
			c.busy = append(c.busy, l)
		}
		l.queue = append(l.queue, frame{due, out})
	}
}

// buffer is a frame's room, used again once the frame is delivered.
func (c *Cables) buffer() []byte {
	if n := len(c.free); n > 0 {
		b := c.free[n-1]
		c.free = c.free[:n-1]
		if cap(b) >= c.room {
			return b[:c.room]
		}
	}
	return make([]byte, c.room)
}

// retag returns the frame in b, which begins after tagRoom bytes, as it leaves
// at the other end, in a buffer that begins where b does: tagged on its way to
// end 0, untagged on its way to end 1, and not at all if it has another tag.
func (k *cable) retag(b []byte, from int) ([]byte, bool) {
	if k.vlan == 0 {
		return b, true
	}
	f := b[tagRoom:]
	if from == 1 {
		copy(b, f[:12])
		binary.BigEndian.PutUint16(b[12:], 0x8100)
		binary.BigEndian.PutUint16(b[14:], k.vlan)
		return b, true
	}
	if len(f) < 18 || binary.BigEndian.Uint16(f[12:]) != 0x8100 || binary.BigEndian.Uint16(f[14:])&0xfff != k.vlan {
		return b, false
	}
	copy(f[4:16], f[:12])
	return b, true
}

// start is where the frame to write begins in its buffer.
func (k *cable) start(from int) int {
	switch {
	case k.vlan == 0:
		return tagRoom
	case from == 1:
		return 0
	}
	return 2 * tagRoom
}

// deliver writes every frame that is due and sets the timer to the next.
func (c *Cables) deliver() {
	next := time.Duration(-1)
	now := machine.Monotonic()
	busy := c.busy[:0]
	for _, l := range c.busy {
		k := l.cable
		for l.head < len(l.queue) && l.queue[l.head].due <= now {
			f := &l.queue[l.head]
			if k.up {
				_, _ = unix.Write(k.taps[1-l.from].fd, f.buf[k.start(l.from):]) // a full or unplugged device loses it
			}
			c.free = append(c.free, f.buf)
			f.buf = nil
			l.head++
		}
		if l.head == len(l.queue) {
			l.queue, l.head = l.queue[:0], 0
			continue
		}
		if l.head > maxQueue/4 && l.head*2 > len(l.queue) {
			l.queue = l.queue[:copy(l.queue, l.queue[l.head:])]
			l.head = 0
		}
		busy = append(busy, l)
		if due := l.queue[l.head].due; next < 0 || due < next {
			next = due
		}
	}
	c.busy = busy
	if next < 0 {
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(next))}
	_ = unix.TimerfdSettime(c.timer, unix.TFD_TIMER_ABSTIME, &spec, nil)
}
