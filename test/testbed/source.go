package testbed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// SourceConfig says what a Source is.
type SourceConfig struct {
	Address string // of the controller, HOST:PORT
	DPID    flow.DPID
	Hosts   int // spread evenly over Ports
	Ports   int
	Seed    uint64
}

// Check says what is wrong.
func (c SourceConfig) check() error {
	if c.Ports < 2 || c.Hosts < c.Ports || c.Hosts > 1<<16 {
		return fmt.Errorf("source of packet-ins with %d hosts at %d ports: want at least 2 ports, a host at each, and at most 65536", c.Hosts, c.Ports)
	}
	return nil
}

// Message is one packet-in of a Source.
type Message struct {
	Due      time.Time // when it was to be sent
	Answered time.Time // when its answer had come; zero if none has
	ToHost   bool      // the answer sends the packet to the port of its destination
}

// Delay is how long the answer took from when the packet-in was due.
func (m Message) Delay() time.Duration { return m.Answered.Sub(m.Due) }

// Source is a simulated switch of OpenFlow 1.3 that keeps no packets and no
// flow entries: it sends packet-ins at a constant rate, each the first of a
// flow between two of its hosts that has not been before, and keeps when each
// was answered: when a packet-out brought the very packet back.
type Source struct {
	cfg   SourceConfig
	conn  net.Conn
	agent agent
	pairs [][2]uint16 // of hosts on different ports, each once
	next  int         // the pair to use next
	ready chan struct{}
	ended chan struct{}

	mu         sync.Mutex // guards what follows
	messages   []Message
	forgotten  int // messages before those
	duplicates int
	err        error
}

// frameMagic begins the payload of every packet of a Source; the number of its
// message follows.
const frameMagic = 0x7765_6674_7372_6331 // "weftsrc1"

// Connect connects a source to a controller and waits until the controller has
// asked for its features and ports.
func Connect(ctx context.Context, cfg SourceConfig) (*Source, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", cfg.Address)
	if err != nil {
		return nil, err
	}
	s := &Source{cfg: cfg, conn: conn, pairs: pairs(cfg), ready: make(chan struct{}), ended: make(chan struct{})}
	s.agent = agent{dpid: cfg.DPID, ports: cfg.Ports, conn: conn}
	if err := s.agent.hello(); err != nil {
		conn.Close()
		return nil, err
	}
	go s.read()
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	select {
	case <-s.ready:
		return s, nil
	case <-s.ended:
		err = s.Err()
	case <-wait.Done():
		err = fmt.Errorf("the controller has not asked a simulated switch for its ports: %w", wait.Err())
	}
	s.Close()
	return nil, err
}

// Close disconnects.
func (s *Source) Close() {
	s.conn.Close()
	<-s.ended
}

// Err returns why the connection has ended, nil if it has not.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// pairs returns all pairs of hosts on different ports, in an order of the seed.
func pairs(cfg SourceConfig) [][2]uint16 {
	var list [][2]uint16
	for a := range cfg.Hosts {
		for b := range cfg.Hosts {
			if a%cfg.Ports != b%cfg.Ports {
				list = append(list, [2]uint16{uint16(a), uint16(b)})
			}
		}
	}
	rng := rand.New(rand.NewPCG(cfg.Seed, uint64(cfg.DPID)))
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// Flows returns how many flows the source has left: a message is the first of
// one.
func (s *Source) Flows() int { return len(s.pairs) - s.next }

func (c SourceConfig) port(host uint16) flow.Port { return flow.Port(int(host)%c.Ports + 1) }
func (c SourceConfig) mac(host uint16) flow.MAC {
	return flow.MAC{0x02, 0x5c, byte(c.DPID >> 8), byte(c.DPID), byte(host >> 8), byte(host)}
}
func (c SourceConfig) ip(host uint16) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 200 + byte(c.DPID)%50, byte(host >> 8), byte(host)})
}

// Announce lets every host speak once, by an ARP announcement (RFC 5227 §3),
// at the given rate, so that the controller learns where it is.
func (s *Source) Announce(ctx context.Context, rate float64) error {
	return s.pace(ctx, s.cfg.Hosts, rate, func(i int, _ time.Time, b []byte) ([]byte, error) {
		h := uint16(i)
		frame := packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: s.cfg.mac(h), SenderIP: s.cfg.ip(h), TargetIP: s.cfg.ip(h)})
		return s.agent.packetIn(b, s.cfg.port(h), frame)
	})
}

// Send sends packet-ins at a rate per second and returns when all have been
// written; see Messages. The n-th is due n/rate seconds after the first,
// whether or not the connection takes it then.
func (s *Source) Send(ctx context.Context, count int, rate float64) error {
	if left := s.Flows(); count > left {
		return fmt.Errorf("%d packet-ins: the source has %d new flows left", count, left)
	}
	return s.pace(ctx, count, rate, func(_ int, due time.Time, b []byte) ([]byte, error) {
		pair := s.pairs[s.next]
		s.next++
		s.mu.Lock()
		number := s.forgotten + len(s.messages)
		s.messages = append(s.messages, Message{Due: due})
		s.mu.Unlock()
		payload := binary.BigEndian.AppendUint64(nil, frameMagic)
		payload = binary.BigEndian.AppendUint64(payload, uint64(number)<<16|uint64(s.cfg.port(pair[1])))
		frame := packet.AppendUDP(nil, packet.Ether{Dst: s.cfg.mac(pair[1]), Src: s.cfg.mac(pair[0])},
			packet.IP{Src: s.cfg.ip(pair[0]), Dst: s.cfg.ip(pair[1])}, 9, 9, payload)
		return s.agent.packetIn(b, s.cfg.port(pair[0]), frame)
	})
}

// pace calls add for count messages when each is due and writes what it has
// appended.
func (s *Source) pace(ctx context.Context, count int, rate float64, add func(i int, due time.Time, b []byte) ([]byte, error)) error {
	began := time.Now()
	due := func(i int) time.Time { return began.Add(time.Duration(float64(i) / rate * float64(time.Second))) }
	timer := time.NewTimer(0)
	defer timer.Stop()
	var b []byte
	for i := 0; i < count; {
		b = b[:0]
		for ; i < count && !due(i).After(time.Now()); i++ {
			var err error
			if b, err = add(i, due(i), b); err != nil {
				return err
			}
		}
		if len(b) > 0 {
			if err := s.agent.write(b); err != nil {
				return fmt.Errorf("simulated switch: %w", err)
			}
		}
		timer.Reset(time.Until(due(i)))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return s.Err()
		case <-timer.C:
		}
	}
	return nil
}

// Messages returns the messages so far and how many answers came twice.
func (s *Source) Messages() (list []Message, duplicates int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.messages...), s.duplicates
}

// Settle waits until all messages are answered, at most for the given time.
func (s *Source) Settle(ctx context.Context, patience time.Duration) error {
	until := time.Now().Add(patience)
	for {
		s.mu.Lock()
		open := 0
		for i := range s.messages {
			if s.messages[i].Answered.IsZero() {
				open++
			}
		}
		s.mu.Unlock()
		if open == 0 || time.Now().After(until) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return s.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// read reads what the controller sends until the connection ends.
func (s *Source) read() {
	defer close(s.ended)
	err := s.agent.serve(func() { close(s.ready) }, s.answer)
	if err == nil {
		err = errors.New("simulated switch: the controller has closed the connection")
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
}

// answer takes a packet-out.
func (s *Source) answer(out *flow.PacketOut) {
	var magic [8]byte
	binary.BigEndian.PutUint64(magic[:], frameMagic)
	at := bytes.Index(out.Data, magic[:])
	if at < 0 || len(out.Data) < at+16 {
		return
	}
	v := binary.BigEndian.Uint64(out.Data[at+8:])
	number, port := int(v>>16), flow.Port(v&0xffff)
	s.mu.Lock()
	defer s.mu.Unlock()
	if number -= s.forgotten; number < 0 || number >= len(s.messages) {
		return
	}
	m := &s.messages[number]
	if !m.Answered.IsZero() {
		s.duplicates++
		return
	}
	m.Answered = time.Now()
	for _, a := range out.Actions {
		if a.Kind == flow.ActionOutput && flow.Port(a.Arg) == port {
			m.ToHost = true
		}
	}
}

// Forget forgets the messages so far, all of which must be answered.
func (s *Source) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten += len(s.messages)
	s.messages, s.duplicates = nil, 0
}
