package test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/packet"
)

// loopDetector watches every link of a lab: a frame that no host sends twice,
// an echo or a marked broadcast, and that comes in twice at one end of a link,
// has gone round.
type loopDetector struct {
	mu     sync.Mutex // guards the following
	seen   map[sightingOf]int
	frames int // that could be told apart
	loops  []string
}

// sightingOf is a frame at the interface of a switch that it came in by.
type sightingOf struct {
	iface int
	frame uint64
}

// detectLoops watches until the test ends.
func detectLoops(t *testing.T, l *lab.Lab) *loopDetector {
	t.Helper()
	d := &loopDetector{seen: map[sightingOf]int{}}
	names := map[int]string{}
	w := &wire{t: t}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		done <- func() error {
			ns, err := netns.GetFromPath(filepath.Join("/run/netns", l.SwitchNetns()))
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := netns.Set(ns); err != nil {
				return err
			}
			interfaces, err := net.Interfaces()
			if err != nil {
				return err
			}
			for _, i := range interfaces {
				names[i.Index] = i.Name
			}
			w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			all := uint16(unix.ETH_P_ALL)
			return errors.Join(
				unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20),
				unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}),
				unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8}))
		}()
	}()
	if err := <-done; err != nil {
		t.Fatalf("watch the links: %v", err)
	}
	t.Cleanup(func() { unix.Close(w.fd) })
	seed := maphash.MakeSeed()
	w.hear(func(frame []byte, iface int) {
		if !unique(frame) {
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		at := sightingOf{iface, maphash.Bytes(seed, frame)}
		d.frames++
		if d.seen[at]++; d.seen[at] == 2 && len(d.loops) < 10 {
			d.loops = append(d.loops, fmt.Sprintf("%s: %x", names[iface], frame[:min(len(frame), 60)]))
		}
	})
	return d
}

// unique reports whether a frame is one of which no host sends two alike: an
// echo request or reply over IPv4, or a marked broadcast.
func unique(frame []byte) bool {
	if _, marked := markOf(frame); marked {
		return true
	}
	ip, ok := packet.ParseIPv4(frame)
	return ok && ip.Proto() == 1 && len(ip.Payload()) >= 8 && (ip.Payload()[0] == 8 || ip.Payload()[0] == 0) &&
		binary.BigEndian.Uint16(ip.Payload()[4:]) != 0
}

// check reports loops, and forgets what has been seen.
func (d *loopDetector) check(t *testing.T, when string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.loops {
		t.Errorf("%s: a frame went round, seen twice at %s", when, at)
	}
	d.loops = nil
	clear(d.seen)
}
