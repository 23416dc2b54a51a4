package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// benchVLANStream is frames in several circuits, one every benchVLANEvery in each, from
// the customers of one edge to those of the other.
type benchVLANStream struct {
	b       *benchCircuits
	watched []int    // circuits
	seen    [][]bool // by circuit and number: that it has arrived
}

const benchVLANEvery = 5 * time.Millisecond

// benchVLANType is the Ethertype of the frames: for experiments (IEEE 802, RFC 5342).
const benchVLANType = 0x88b5

func newBenchVLANStream(b *benchCircuits, watched []int) *benchVLANStream {
	return &benchVLANStream{b: b, watched: watched}
}

// run sends frames for a while, and takes them in.
func (s *benchVLANStream) run(ctx context.Context, length time.Duration) error {
	count := int(length / benchVLANEvery)
	s.seen = make([][]bool, len(s.watched))
	for i := range s.seen {
		s.seen[i] = make([]bool, count)
	}
	from, to, err := s.sockets()
	defer func() {
		for _, fd := range append(from, to...) {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	began := time.Now()
	for n := range count {
		time.Sleep(time.Until(began.Add(time.Duration(n) * benchVLANEvery)))
		for i, circuit := range s.watched {
			if _, err := unix.Write(from[circuit/benchVLANs], benchVLANFrame(circuit, i, n)); err != nil {
				return fmt.Errorf("send in circuit %d: %w", circuit, err)
			}
		}
		s.take(to)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	time.Sleep(100 * time.Millisecond) // for the last
	s.take(to)
	return nil
}

// sockets opens one at each customer's port of both edges.
func (s *benchVLANStream) sockets() (from, to []int, err error) {
	for edge, list := range []*[]int{&from, &to} {
		for n := range s.b.c.ports() {
			host := coldHost{s.b.lab.HostNetns(s.b.customer(edge, n))}
			err := host.within(func() error {
				link, err := net.InterfaceByName("eth0")
				if err != nil {
					return err
				}
				protocol := uint16(benchVLANType<<8&0xff00 | benchVLANType>>8) // in the network's order
				fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(protocol))
				if err != nil {
					return err
				}
				*list = append(*list, fd)
				_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20) // the default holds a stall of some 100 ms
				return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Index})
			})
			if err != nil {
				return from, to, err
			}
		}
	}
	return from, to, nil
}

// benchVLANFrame is a frame with the tag of a circuit, and in its payload the place of
// the circuit and a number.
func benchVLANFrame(circuit, place, number int) []byte {
	f := make([]byte, 64)
	copy(f, []byte{0x02, 0xbe, 0, 0, 0, 2, 0x02, 0xbe, 0, 0, 0, 1, 0x81, 0x00})
	binary.BigEndian.PutUint16(f[14:], uint16(circuit%benchVLANs+1))
	binary.BigEndian.PutUint16(f[16:], benchVLANType)
	binary.BigEndian.PutUint32(f[18:], uint32(place))
	binary.BigEndian.PutUint32(f[22:], uint32(number))
	return f
}

// take notes the frames that have arrived. The kernel has taken their tags off.
func (s *benchVLANStream) take(sockets []int) {
	frame := make([]byte, 128)
	for _, fd := range sockets {
		for {
			n, _, err := unix.Recvfrom(fd, frame, 0)
			if err != nil {
				break
			}
			if n < 22 {
				continue
			}
			place, number := binary.BigEndian.Uint32(frame[14:]), binary.BigEndian.Uint32(frame[18:])
			if int(place) < len(s.seen) && int(number) < len(s.seen[place]) {
				s.seen[place][number] = true
			}
		}
	}
}

// outages is, for each circuit, the longest run of frames that did not arrive, in
// milliseconds.
func (s *benchVLANStream) outages() (list []float64) {
	for _, seen := range s.seen {
		longest, run := 0, 0
		for _, there := range seen {
			if run++; there {
				run = 0
			}
			longest = max(longest, run)
		}
		list = append(list, float64(longest)*benchVLANEvery.Seconds()*1e3)
	}
	return list
}
