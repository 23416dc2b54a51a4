package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/ownthread"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/test/measure"
)

// ColdHost is a host of a lab that takes a new Ethernet and IPv4 address for
// each run: to the network it is a host that nobody has heard of.
type ColdHost struct {
	lab  *lab.Lab
	name string
	IP   netip.Addr // that it has now
	MAC  string
}

// NewColdHost turns a host of a lab into one, with IPv6 off, whose chatter
// would be heard.
func NewColdHost(ctx context.Context, l *lab.Lab, name string) (*ColdHost, error) {
	if _, err := l.Host(name); err != nil {
		return nil, err
	}
	h := &ColdHost{lab: l, name: name}
	measure.Differs(ctx, "hosts without IPv6")
	_, err := l.Exec(ctx, name, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
	return h, err
}

// Become gives the host the n-th of new addresses, n from 1, in place of those
// that it has; what it knew of its neighbours is forgotten.
func (h *ColdHost) Become(ctx context.Context, n int) error {
	h.IP = netip.AddrFrom4([4]byte{10, 99, byte(n >> 8), byte(n)})
	h.MAC = fmt.Sprintf("02:be:%02x:%02x:%02x:%02x", byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	script := fmt.Sprintf("ip addr flush dev eth0 && ip link set dev eth0 address %s && ip addr add %s/16 dev eth0 && ip neigh flush dev eth0", h.MAC, h.IP)
	if out, err := h.lab.Exec(ctx, h.name, "sh", "-c", script); err != nil {
		return fmt.Errorf("give host %s new addresses: %w: %s", h.name, err, out)
	}
	return nil
}

// ErrNoAnswer says that no answer came to a ping.
var ErrNoAnswer = errors.New("no answer")

// Ping sends count ICMP echo requests to another host, each when the one
// before is answered and the interval over, and returns their round-trip
// times. A request without an answer in the given time is ErrNoAnswer.
func (h *ColdHost) Ping(to *ColdHost, count int, interval, wait time.Duration) (rtts []time.Duration, err error) {
	err = within(h.lab.HostNetns(h.name), func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		if err != nil {
			return fmt.Errorf("open an ICMP socket: %w", err)
		}
		defer unix.Close(fd)
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: h.IP.As4()}); err != nil {
			return fmt.Errorf("bind to %v: %w", h.IP, err)
		}
		limit := unix.NsecToTimeval(wait.Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
			return err
		}
		for seq := range count {
			if seq > 0 {
				time.Sleep(interval)
			}
			rtt, err := echo(fd, to.IP, uint16(seq+1))
			if err != nil {
				return err
			}
			rtts = append(rtts, rtt)
		}
		return nil
	})
	return rtts, err
}

// echo sends one ICMP echo request and returns how long its answer took. The
// kernel fills in identifier and checksum.
func echo(fd int, to netip.Addr, seq uint16) (time.Duration, error) {
	request := make([]byte, 64)
	request[0] = 8 // echo request
	binary.BigEndian.PutUint16(request[6:], seq)
	answer := make([]byte, 128)
	began := time.Now()
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrInet4{Addr: to.As4()}); err != nil {
		return 0, fmt.Errorf("send to %v: %w", to, err)
	}
	for {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		rtt := time.Since(began)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN || err == unix.EHOSTUNREACH:
			return 0, ErrNoAnswer
		case err != nil:
			return 0, fmt.Errorf("receive from %v: %w", to, err)
		case n >= 8 && answer[0] == 0 && binary.BigEndian.Uint16(answer[6:]) == seq:
			return rtt, nil
		}
	}
}

// within runs f on a thread in a named network namespace.
func within(netns string, f func() error) error {
	return ownthread.Do(func() error {
		ns, err := os.Open(filepath.Join("/run/netns", netns))
		if err != nil {
			return fmt.Errorf("network namespace %s: %w", netns, err)
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", netns, err)
		}
		return f()
	})
}
