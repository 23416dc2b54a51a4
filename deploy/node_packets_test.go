package deploy_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// stageNames are the stages of the tests' pipeline.
var stageNames = []string{"discovery", "hosts", "firewall", "forwarding"}

// staged declares southbound and the stages.
func staged() []weft.Spec {
	list := []weft.Spec{{Name: "southbound", Pipeline: true}, {Name: "idle", Scale: weft.Any}}
	for _, name := range stageNames {
		list = append(list, weft.Spec{Name: name, Stage: true, Scale: weft.Any})
	}
	return list
}

// marking is a stage that does one thing or another to a packet, depending on
// its number, and adds its mark to the decision.
func marking(stage int) func(*actor) {
	return func(p *actor) {
		weft.Stage(p.env, func(sw flow.DPID) weft.StageFunc {
			return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
				n := sequence(in.Data)
				if stage == 0 {
					in.Role = flow.RoleEdge
				}
				if stage == 1 {
					in.Src = flow.Location{Switch: sw, Port: in.Key.InPort}
				}
				d.PacketOut(sw, flow.PacketOut{BufferID: uint32(stage), InPort: flow.Port(in.Role)<<8 | in.Src.Port, Data: slices.Clone(in.Data)})
				switch {
				case n%11 == uint64(stage):
					return flow.Done
				case n%13 == uint64(stage):
					return flow.Drop
				case stage == len(stageNames)-1:
					return flow.Done
				}
				return flow.Next
			}
		})
	}
}

// session is one of a switch, at which packets come in.
type session struct {
	pipeline weft.Pipeline
	sw       flow.DPID
	sent     int

	mu      sync.Mutex
	answers []string // decisions in the order in which they came
	last    map[byte]uint64
	count   map[uint64]int
	wrong   []string // packets that overtook others of their flow on their way through all stages
}

func open(p *actor, sw flow.DPID) *session {
	s := &session{sw: sw, last: map[byte]uint64{}, count: map[uint64]int{}}
	s.pipeline = weft.OpenPipeline(p.env, sw, func(d *flow.Decision) {
		if d != nil {
			s.decided(d)
		}
	})
	return s
}

// decided takes a decision down.
func (s *session) decided(d *flow.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for _, o := range d.Outs {
		fmt.Fprintf(&text, "%d:%x:%d ", o.BufferID, uint32(o.InPort), sequence(o.Data))
	}
	s.answers = append(s.answers, text.String())
	data := d.Outs[0].Data
	n, f := sequence(data), data[11]
	s.count[n]++
	if len(d.Outs) < len(stageNames) {
		return // an early stage is done with it, and may be before those of its flow that are away are
	}
	if before, ok := s.last[f]; ok && n <= before {
		s.wrong = append(s.wrong, fmt.Sprintf("%d after %d", n, before))
	}
	s.last[f] = n
}

func (s *session) answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.answers)
}

// sequence is the number that a packet carries.
func sequence(data []byte) uint64 { return binary.BigEndian.Uint64(data[14:]) }

// send sends packets of several flows.
func (s *session) send(count int) {
	var d flow.Decision
	for range count {
		data := make([]byte, 60)
		data[5], data[11] = 1, byte(s.sent%7)
		binary.BigEndian.PutUint16(data[12:], 0x88b5)
		binary.BigEndian.PutUint64(data[14:], uint64(s.sent))
		in := &flow.PacketIn{Switch: s.sw, Time: time.Now().UnixNano(), BufferID: flow.BufferNone, TotalLen: 60, Data: data}
		in.Key.InPort = flow.Port(s.sent%5 + 1)
		packet.ParseEthernet(data, &in.Key)
		s.sent++
		d.Reset()
		if s.pipeline.Packet(in, &d) != flow.Away {
			s.decided(&d)
		}
	}
	s.pipeline.Flush()
}

// complete waits until every packet is answered, and checks that each was once
// and in order.
func (s *session) complete(c *cluster) {
	c.t.Helper()
	c.eventually("every packet is answered", func() bool { return s.answered() >= s.sent })
	time.Sleep(5 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, count := range s.count {
		if count != 1 {
			c.t.Errorf("packet %d is answered %d times", n, count)
		}
	}
	if len(s.wrong) > 0 {
		c.t.Errorf("%d packets have overtaken others: %v", len(s.wrong), s.wrong[:min(len(s.wrong), 10)])
	}
}

func stageSetup() map[string]func(*actor) {
	m := map[string]func(*actor){}
	for i, name := range stageNames {
		m[name] = marking(i)
	}
	return m
}

// TestStagesDoTheSameWhereverTheyRun splits the pipeline in every way over four
// processes, the southbound's among them.
func TestStagesDoTheSameWhereverTheyRun(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	arrangement := func(n int) string {
		at := []string{"southbound", "idle", "idle", "idle"}
		for _, stage := range stageNames {
			at[n%4] += ", " + stage
			n /= 4
		}
		return placed(at...)
	}
	c.apply(arrangement(0))
	c.startAll()
	sb := c.run("southbound")
	run := func() []string {
		s := open(sb, 5)
		defer s.pipeline.Close()
		s.send(143)
		s.complete(c)
		slices.Sort(s.answers) // flows are dealt with independently
		return s.answers
	}
	want := run()
	r := rand.New(rand.NewPCG(7, 8))
	order := r.Perm(256)
	if testing.Short() {
		order = order[:16]
	}
	for _, n := range order[:min(len(order), 48)] {
		c.apply(arrangement(n))
		c.settled()
		if got := run(); !slices.Equal(got, want) {
			t.Fatalf("arrangement %d: decisions differ from those of one process:\n%v\n%v", n, got[:5], want[:5])
		}
	}
}

// load sends packets in sessions of their own until it is stopped.
type load struct {
	sessions []*session
	stop     chan struct{}
	work     sync.WaitGroup
}

func startLoad(sb *actor, sessions, batch int, pause time.Duration) *load {
	l := &load{stop: make(chan struct{})}
	for i := range sessions {
		s := open(sb, flow.DPID(i+1))
		l.sessions = append(l.sessions, s)
		l.work.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				case <-time.After(pause):
				}
				s.send(batch)
			}
		})
	}
	return l
}

// end stops the load and waits until all is answered.
func (l *load) end(c *cluster) (total int) {
	c.t.Helper()
	close(l.stop)
	l.work.Wait()
	for _, s := range l.sessions {
		s.complete(c)
		s.pipeline.Close()
		total += s.sent
	}
	for _, name := range c.names() {
		if shed := c.process(name).metric(c.t, "weft_deploy_packets_shed_total", ""); shed != 0 {
			c.t.Errorf("%s has given up %v packets", name, shed)
		}
	}
	return total
}

// TestOrderUnderEveryBalance has replicas come and go, freeze and die under
// load.
func TestOrderUnderEveryBalance(t *testing.T) {
	t.Parallel()
	for _, balance := range []string{"flow", "switch", "round-robin", "least"} {
		t.Run(balance, func(t *testing.T) {
			c := newCluster(t, staged(), stageSetup())
			text := "{name: a, events: grpc, balance: " + balance + ", workers: {w: {services: [southbound, discovery, hosts]}, r: {services: [firewall, forwarding], replicas: %d}}}"
			c.apply(fmt.Sprintf(text, 3))
			c.startAll()
			l := startLoad(c.run("southbound"), 5, 20, time.Millisecond)
			time.Sleep(50 * time.Millisecond)
			c.process("r-2").gate.freeze()
			time.Sleep(700 * time.Millisecond)
			c.kill(c.process("r-3"))
			c.process("r-2").gate.thaw()
			time.Sleep(50 * time.Millisecond)
			c.start("r-3")
			c.settled()
			c.apply(fmt.Sprintf(text, 2))
			c.settled()
			c.kill(c.process("r-1"))
			time.Sleep(30 * time.Millisecond)
			c.start("r-1")
			c.settled()
			t.Logf("%d packets", l.end(c))
		})
	}
}

// TestDeadReplicaThatIsStillListed has a process die and nobody say so: its
// share of the packets goes to the others.
func TestDeadReplicaThatIsStillListed(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply("{name: a, events: grpc, workers: {w: {services: [southbound, discovery, hosts, firewall]}, r: {services: [forwarding], replicas: 2}}}")
	c.startAll()
	s := open(c.run("southbound"), 1)
	s.send(100)
	s.complete(c)
	dead := c.process("r-2")
	dead.gate.kill()
	_ = c.leave(dead) // its entry stays
	for range 20 {
		s.send(20)
		s.complete(c)
	}
}

// TestPacketsWaitForAStage has the only instance of a stage away for a while.
func TestPacketsWaitForAStage(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply("{name: a, events: grpc, workers: {w: {services: [southbound, discovery, hosts, firewall]}, r: {services: [forwarding]}}}")
	c.startAll()
	s := open(c.run("southbound"), 1)
	c.kill(c.process("r"))
	s.send(1000)
	c.eventually("packets wait", func() bool { return c.process("w").metric(t, "weft_deploy_packets_waiting", "") > 0 })
	c.start("r")
	s.complete(c)
}

// TestStageThatThePlanLeavesOut has packets wait for a stage that is away, until
// a plan without it is applied.
func TestStageThatThePlanLeavesOut(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply("{name: a, events: grpc, workers: {w: {services: [southbound, discovery, hosts]}, f: {services: [firewall]}, r: {services: [forwarding]}}}")
	c.startAll()
	s := open(c.run("southbound"), 1)
	c.kill(c.process("f"))
	s.send(1000)
	c.eventually("packets wait", func() bool { return c.process("w").metric(t, "weft_deploy_packets_waiting", "") > 0 })
	c.apply("{name: b, events: grpc, workers: {w: {services: [southbound, discovery, hosts]}, r: {services: [forwarding]}}}")
	s.complete(c)
}

// TestProbesPassPacketsThatWait has packets wait for their last stage while the
// first, which is in another process, gets LLDP.
func TestProbesPassPacketsThatWait(t *testing.T) {
	setup := stageSetup()
	var probes atomic.Int64
	setup["discovery"] = func(p *actor) {
		weft.Stage(p.env, func(flow.DPID) weft.StageFunc {
			return func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict {
				if in.Key.EthType == flow.EthTypeLLDP {
					probes.Add(1)
					return flow.Done
				}
				return flow.Next
			}
		})
	}
	c := newCluster(t, staged(), setup)
	c.apply("{name: a, events: grpc, workers: {w: {services: [southbound]}, d: {services: [discovery, hosts, firewall]}, r: {services: [forwarding]}}}")
	c.startAll()
	s := open(c.run("southbound"), 1)
	c.kill(c.process("r"))
	s.send(1000)
	var d flow.Decision
	in := &flow.PacketIn{Switch: s.sw, Time: time.Now().UnixNano(), BufferID: flow.BufferNone, TotalLen: 60, Data: make([]byte, 60)}
	binary.BigEndian.PutUint16(in.Data[12:], uint16(flow.EthTypeLLDP))
	packet.ParseEthernet(in.Data, &in.Key)
	if v := s.pipeline.Packet(in, &d); v != flow.Away {
		t.Fatalf("verdict %v of LLDP", v)
	}
	s.pipeline.Flush()
	c.eventually("LLDP has passed", func() bool { return probes.Load() == 1 })
	if waiting := c.process("w").metric(t, "weft_deploy_packets_waiting", ""); waiting == 0 {
		t.Error("no packet waits")
	}
	c.start("r")
	s.complete(c)
}

// TestPacketsThatFindNoRoomAreShed fills the lane of a session, and closes it
// while packets are away.
func TestPacketsThatFindNoRoomAreShed(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply("{name: a, events: grpc, workers: {w: {services: [southbound, discovery, hosts, firewall]}, r: {services: [forwarding]}}}")
	c.startAll()
	s := open(c.run("southbound"), 1)
	c.kill(c.process("r"))
	s.send(1 << 17)
	w := c.process("w")
	full := w.metric(t, "weft_deploy_packets_shed_total", "queue_full")
	if full == 0 {
		t.Error("the queue has no bound")
	}
	s.pipeline.Close()
	c.start("r")
	c.eventually("nothing waits any more", func() bool { return w.metric(t, "weft_deploy_packets_waiting", "") == 0 })
	lost := w.metric(t, "weft_deploy_packets_shed_total", "session_closed")
	if s.answered()+int(full+lost) != s.sent {
		t.Errorf("%d answered, %v found no room, %v came after the end of the session; %d were sent", s.answered(), full, lost, s.sent)
	}
}

// TestStageThatPanicsElsewhere drops the packet and no other.
func TestStageThatPanicsElsewhere(t *testing.T) {
	var seen atomic.Int64
	setup := stageSetup()
	setup["forwarding"] = func(p *actor) {
		weft.Stage(p.env, func(sw flow.DPID) weft.StageFunc {
			return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
				seen.Add(1)
				if sequence(in.Data)%2 == 1 {
					panic("odd")
				}
				return flow.Done
			}
		})
	}
	c := newCluster(t, staged(), setup)
	c.apply("{name: a, events: grpc, workers: {w: {services: [southbound]}, v: {services: [discovery, hosts, firewall]}, r: {services: [forwarding]}}}")
	c.startAll()
	s := open(c.run("southbound"), 1)
	s.send(200)
	w := c.process("w")
	c.eventually("all are dealt with", func() bool { return w.metric(t, "weft_deploy_packets_carried_total", "") == 200 })
	for n := range s.count {
		if n%2 == 1 && n%11 > 2 && n%13 > 2 {
			t.Errorf("packet %d is answered, though a stage panicked at it", n)
		}
	}
	if panics := c.process("r").metric(t, "weft_deploy_panics", "forwarding"); panics == 0 || seen.Load() != s.stagesSeen() {
		t.Errorf("%v panics, %d packets seen, want %d", panics, seen.Load(), s.stagesSeen())
	}
}

// stagesSeen is how many of the packets sent reach the last stage.
func (s *session) stagesSeen() (count int64) {
	for n := range s.sent {
		if n%11 > 2 && n%13 > 2 {
			count++
		}
	}
	return count
}

// TestChaos applies plans back and forth under load: nothing is lost, nothing
// answered twice, no packet overtakes another of its flow.
func TestChaos(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	plans := []string{
		"{name: a, events: grpc, workers: {w: {services: [southbound, discovery, hosts, firewall, forwarding]}, x: {services: [idle]}, r: {services: [idle], replicas: 2}}}",
		"{name: a, events: grpc, workers: {w: {services: [southbound, discovery]}, x: {services: [hosts]}, r: {services: [firewall, forwarding], replicas: 2}}}",
		"{name: a, events: grpc, transport: ws, balance: least, workers: {w: {services: [southbound]}, x: {services: [discovery, hosts]}, r: {services: [firewall, forwarding], replicas: 2}}}",
		"{name: a, events: ws, transport: rest, balance: round-robin, workers: {w: {services: [southbound, forwarding]}, x: {services: [discovery, firewall]}, r: {services: [hosts], replicas: 2}}}",
	}
	c.apply(plans[0])
	c.startAll()
	l := startLoad(c.run("southbound"), 4, 10, time.Millisecond)
	r := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		c.apply(plans[r.IntN(len(plans))])
		if r.IntN(3) > 0 {
			c.settled()
		}
		time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
		if r.IntN(4) == 0 {
			victim := c.process([]string{"r-1", "r-2", "x"}[r.IntN(3)])
			c.kill(victim)
			c.start(victim.name)
		}
	}
	c.settled()
	t.Logf("%d packets", l.end(c))
}
