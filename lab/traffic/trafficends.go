package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

const (
	trafficMagic = 0x77656674_75647031 // "weftudp1"
	trafficPort  = 5000                // of the sink, unless another is said
	firstFlow    = 10000               // source port of the first flow
)

// trafficSource sends packets and keeps when the kernel handed each to the
// interface.
type trafficSource struct {
	netns string
	host  topology.Host
	to    [4]byte
	plan  *schedule
	fd    int
	frame []byte
	at    []int64 // by packet: in nanoseconds, 0 if not known
	sent  int
	used  time.Duration // of a processor
}

// stampSent asks the kernel for the time at which each packet is handed to the
// interface, with its number, without the packet itself.
const stampSent = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE |
	unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY | unix.SOF_TIMESTAMPING_OPT_CMSG

func openSource(netns string, h topology.Host, to netip.Addr, o Options) (*trafficSource, error) {
	s := &trafficSource{netns: netns, host: h, to: to.As4(), plan: newSchedule(o), at: make([]int64, o.Count), frame: make([]byte, o.Size)}
	from, p := h.IPv4.Addr().As4(), s.frame
	p[0], p[6], p[8], p[9] = 0x45, 0x40, 64, unix.IPPROTO_UDP // may not be fragmented; the kernel adds the checksum
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	copy(p[12:], from[:])
	copy(p[16:], s.to[:])
	binary.BigEndian.PutUint16(p[ipHeader+2:], o.Port)
	binary.BigEndian.PutUint16(p[ipHeader+4:], uint16(o.Size-ipHeader)) // and no checksum of UDP
	binary.BigEndian.PutUint64(p[ipHeader+udpHeader:], trafficMagic)
	for i := leastTraffic; i < len(p); i++ {
		p[i] = '.'
	}
	err := machine.InNetns(netns, func() (err error) {
		if s.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW); err != nil {
			return err
		}
		return errors.Join(unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stampSent),
			buffers(s.fd, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE), buffers(s.fd, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE))
	})
	return s, err
}

// buffers makes a buffer of a socket as large as may be.
func buffers(fd, ordinary, force int) error {
	const size = 16 << 20
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, ordinary, size)
}

func (s *trafficSource) close() { unix.Close(s.fd) }

// run sends all packets, each when it is due or at once if it is late, on a
// thread of its own. The first goes to a neighbour that is known.
func (s *trafficSource) run(ctx context.Context, in *trafficSink) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: this thread ends with the goroutine
		done <- onCPUs(s.host.CPUs, func() error { return s.greet(ctx, in) })
	}()
	return <-done
}

// onCPUs runs f with the CPUs of a host, any if it has none of its own.
func onCPUs(cpus []int, f func() error) error {
	if len(cpus) > 0 {
		if err := machine.Confine(cpus); err != nil {
			return err
		}
	}
	return f()
}

// trafficPatience is how long a source waits for its first packet to arrive, and a
// sink for a further one.
const trafficPatience = 3 * time.Second

// greet sends packets that do not count until one arrives, so that addresses and
// flow entries are known, and then those that count.
func (s *trafficSource) greet(ctx context.Context, in *trafficSink) error {
	binary.BigEndian.PutUint64(s.frame[ipHeader+udpHeader+8:], noPacket)
	for end := time.Now().Add(trafficPatience); in.greeted.Load() == 0 && time.Now().Before(end) && ctx.Err() == nil; {
		if err := s.send(0); err != nil {
			return err
		}
		for range 20 {
			if in.greeted.Load() == 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
	if _, err := s.stamps(nil); err != nil {
		return err
	}
	// numbers of times begin at 0 again
	if err := errors.Join(unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, 0),
		unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stampSent)); err != nil {
		return err
	}
	return s.pour(ctx)
}

// noPacket is the number of packets that do not count.
const noPacket = 1 << 63

func (s *trafficSource) send(flow int) error {
	binary.BigEndian.PutUint16(s.frame[ipHeader:], uint16(firstFlow+flow))
	for {
		err := unix.Sendto(s.fd, s.frame, 0, &unix.SockaddrInet4{Addr: s.to})
		if err != unix.EAGAIN && err != unix.ENOBUFS && err != unix.EINTR {
			return err
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}, 10)
	}
}

func (s *trafficSource) pour(ctx context.Context) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	before := cputime.Thread()
	began := machine.Monotonic()
	for s.sent < len(s.at) {
		if err := ctx.Err(); err != nil {
			return err
		}
		due := began + s.plan.due
		if wait := due - machine.Monotonic(); wait > 0 {
			at := unix.NsecToTimespec(int64(min(due, machine.Monotonic()+100*time.Millisecond))) // ctx may end
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil)
			if due > machine.Monotonic() {
				continue
			}
		}
		binary.BigEndian.PutUint64(s.frame[ipHeader+udpHeader+8:], uint64(s.sent))
		s.plan.fill(s.frame[leastTraffic:])
		if err := s.send(s.plan.flow()); err != nil {
			return err
		}
		s.sent++
		s.plan.next()
		if s.sent%64 == 0 {
			if _, err := s.stamps(s.at); err != nil {
				return err
			}
		}
	}
	s.used = cputime.Thread() - before
	for end := time.Now().Add(trafficPatience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if n, err := s.stamps(s.at); err != nil || n == 0 && s.at[len(s.at)-1] != 0 {
			return err
		}
	}
	return nil
}

// stamps reads the times that the kernel has, and keeps them by packet.
func (s *trafficSource) stamps(at []int64) (read int, err error) {
	var oob [512]byte
	for {
		_, n, _, _, err := unix.Recvmsg(s.fd, nil, oob[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		switch err {
		case nil:
		case unix.EAGAIN:
			return read, nil
		case unix.EINTR:
			continue
		default:
			return read, fmt.Errorf("read the times of packets: %w", err)
		}
		read++
		when, number := stampOf(oob[:n])
		if when != 0 && number < len(at) {
			at[number] = when
		}
	}
}

// stampOf returns the time and the number of a packet in a message of the kernel.
func stampOf(oob []byte) (at int64, number int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, 0
	}
	number = 1 << 62
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPING && len(m.Data) >= 16:
			at = int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR && len(m.Data) >= 16 && m.Data[4] == unix.SO_EE_ORIGIN_TIMESTAMPING:
			number = int(binary.NativeEndian.Uint32(m.Data[12:]))
		}
	}
	return at, number
}

// trafficSink receives packets and keeps when the kernel took each from the
// interface.
type trafficSink struct {
	fd      int
	cpus    []int
	ending  atomic.Bool
	done    chan struct{} // closed when what follows count is known
	greeted atomic.Int64  // packets that do not count
	count   atomic.Int64  // packets that do

	at       []int64 // by packet: in nanoseconds, 0 if it has not come or has no time
	seen     []bool
	received int
	twice    int
	used     time.Duration // of a processor
	err      error
}

func openSink(netns string, cpus []int, o Options) (*trafficSink, error) {
	s := &trafficSink{cpus: cpus, at: make([]int64, o.Count), seen: make([]bool, o.Count), done: make(chan struct{})}
	err := machine.InNetns(netns, func() (err error) {
		if s.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		wake := unix.NsecToTimeval(int64(sinkWake))
		err = errors.Join(unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE),
			buffers(s.fd, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE), unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wake),
			bind(s.fd, o.Port))
		if err != nil {
			unix.Close(s.fd)
		}
		return err
	})
	return s, err
}

// bind gives a socket a port. One that was closed has it until the processes that were
// begun meanwhile run their programs.
func bind(fd int, port uint16) error {
	for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(port)})
		if err != unix.EADDRINUSE || time.Now().After(end) {
			return err
		}
	}
}

// sinkWake is how often a sink looks whether it is to end.
const sinkWake = 100 * time.Millisecond

// settle waits until so many packets have come, or none has for a while.
func (s *trafficSink) settle(sent int) {
	last, since := s.count.Load(), time.Now()
	for s.count.Load() < int64(sent) && time.Since(since) < trafficPatience {
		time.Sleep(time.Millisecond)
		if now := s.count.Load(); now != last {
			last, since = now, time.Now()
		}
	}
}

// close ends run and waits for it.
func (s *trafficSink) close() {
	s.ending.Store(true)
	<-s.done
	unix.Close(s.fd)
}

// run receives until the sink is closed, on a thread of its own.
func (s *trafficSink) run() {
	defer close(s.done)
	runtime.LockOSThread() // for good: this thread ends with the goroutine
	s.err = onCPUs(s.cpus, s.receive)
}

func (s *trafficSink) receive() error {
	buf, oob := make([]byte, trafficHeader), make([]byte, 256)
	var before time.Duration
	for !s.ending.Load() {
		n, oobn, _, _, err := unix.Recvmsg(s.fd, buf, oob, 0)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n < trafficHeader || binary.BigEndian.Uint64(buf) != trafficMagic:
			continue
		}
		number := binary.BigEndian.Uint64(buf[8:])
		if number == noPacket {
			s.greeted.Add(1)
			before = cputime.Thread()
			continue
		}
		if number >= uint64(len(s.at)) {
			continue
		}
		if s.seen[number] {
			s.twice++
			continue
		}
		s.seen[number] = true
		s.at[number], _ = stampOf(oob[:oobn])
		s.received++
		s.count.Add(1)
		s.used = cputime.Thread() - before
	}
	return nil
}
