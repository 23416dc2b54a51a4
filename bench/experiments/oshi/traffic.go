package oshi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/internal/ownthread"
	"github.com/weft-sdn/weft/lab"
)

// stream is UDP packets over IPv4 from one host of a lab to another.
type stream struct {
	from, to string
	size     int // of the UDP payload, in bytes
	rate     int // packets a second
	count    int
	flows    int // source ports, which take turns
}

// The ports of stream: discard, which nobody answers, and the first source.
const (
	sinkPort   = 9
	sourcePort = 10000
)

// carried is what became of stream.
type carried struct {
	sent, received int
	source         time.Duration // processor time of the source, and of the kernel on its behalf
}

// send sends the packets. They are taken in, and dropped, by a socket that nobody
// reads, so that the destination costs next to nothing.
func (t stream) send(ctx context.Context, l *lab.Lab) (c carried, err error) {
	from, err := l.Host(t.from)
	if err != nil {
		return c, err
	}
	to, err := l.Host(t.to)
	if err != nil {
		return c, err
	}
	sink := -1
	err = within(l.HostNetns(t.to), func() error {
		if sink, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return errors.Join(unix.SetsockoptInt(sink, unix.SOL_SOCKET, unix.SO_RCVBUF, 0), unix.Bind(sink, &unix.SockaddrInet4{Port: sinkPort}))
	})
	if sink >= 0 {
		defer unix.Close(sink)
	}
	if err != nil {
		return c, fmt.Errorf("take packets in at host %s: %w", t.to, err)
	}
	before, err := arrived(l, t.to)
	if err != nil {
		return c, err
	}
	packet := t.packet(from.IPv4.Addr().As4(), to.IPv4.Addr().As4())
	err = within(l.HostNetns(t.from), func() (err error) { // one goroutine, and so one thread
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := threadFirst(0); err != nil {
			return err
		}
		used := cputime.Thread()
		err = t.pour(ctx, fd, packet, &unix.SockaddrInet4{Addr: to.IPv4.Addr().As4()}, &c.sent)
		c.source = cputime.Thread() - used
		return err
	})
	if err != nil {
		return c, fmt.Errorf("send from host %s to %s: %w", t.from, t.to, err)
	}
	for range 20 { // until the last has come
		time.Sleep(10 * time.Millisecond)
		after, err := arrived(l, t.to)
		if err != nil {
			return c, err
		}
		if c.received = after - before; c.received >= c.sent {
			break
		}
	}
	return c, nil
}

// Packets that are lost on the way cost the switches behind nothing: of those of
// a sample at most lostMost may be, in one of its attempts.
const (
	lostMost = 0.01
	attempts = 8
)

// whole sends the packets, again if too many are lost. Before and after are called
// before and after each attempt.
func (t stream) whole(ctx context.Context, l *lab.Lab, before, after func() error) (c carried, err error) {
	for range attempts {
		if err := before(); err != nil {
			return c, err
		}
		if c, err = t.send(ctx, l); err != nil {
			return c, err
		}
		if err := after(); err != nil {
			return c, err
		}
		if float64(c.sent-c.received) <= lostMost*float64(c.sent) {
			return c, nil
		}
	}
	return c, fmt.Errorf("%s to %s: %d of %d packets arrive", t.from, t.to, c.received, c.sent)
}

const udpHeader, ipHeader = 8, 20

// packet returns one of the packets; the kernel fills in the checksum of its header.
func (t stream) packet(from, to [4]byte) []byte {
	p := make([]byte, ipHeader+udpHeader+t.size)
	p[0], p[8], p[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	copy(p[12:], from[:])
	copy(p[16:], to[:])
	binary.BigEndian.PutUint16(p[ipHeader+2:], sinkPort)
	binary.BigEndian.PutUint16(p[ipHeader+4:], uint16(udpHeader+t.size)) // and no checksum
	return p
}

// pour sends what is due, about every millisecond.
func (t stream) pour(ctx context.Context, fd int, packet []byte, to unix.Sockaddr, sent *int) error {
	for began := time.Now(); *sent < t.count; {
		due := min(t.count, int(time.Since(began).Seconds()*float64(t.rate)))
		for ; *sent < due; *sent++ {
			binary.BigEndian.PutUint16(packet[ipHeader:], uint16(sourcePort+*sent%t.flows))
			if err := unix.Sendto(fd, packet, 0, to); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// arrived is how many packets a host's interface has received.
func arrived(l *lab.Lab, host string) (n int, err error) {
	err = within(l.HostNetns(host), func() error {
		text, err := os.ReadFile("/proc/thread-self/net/dev")
		if err == nil {
			n, err = parseArrived(string(text))
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("host %s: %w", host, err)
	}
	return n, nil
}

// parseArrived reads, from /proc/net/dev, how many packets a host has received.
func parseArrived(text string) (n int, err error) {
	_, line, found := strings.Cut(text, "eth0:")
	f := strings.Fields(line)
	if !found || len(f) < 2 {
		return 0, fmt.Errorf("no eth0 in %q", text)
	}
	return strconv.Atoi(f[1]) // after the bytes
}

// within runs f on a thread in a named network namespace.
func within(name string, f func() error) error {
	return ownthread.Do(func() error {
		ns, err := os.Open(filepath.Join("/run/netns", name))
		if err != nil {
			return fmt.Errorf("network namespace %s: %w", name, err)
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", name, err)
		}
		return f()
	})
}
