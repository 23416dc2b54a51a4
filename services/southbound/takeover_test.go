package southbound

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"weft/api"
	"weft/flow"
	"weft/openflow"
)

// judge is a switch that implements roles and generation ids, and logs every
// message that would program it, with the epoch of who sent it.
type judge struct {
	t    *testing.T
	dpid dpid

	mu         sync.Mutex // guards what follows
	conns      map[*judged]bool
	generation uint64
	generated  bool
	writes     []judgedWrite
	highest    uint64 // epoch of a write that was taken
}

// judged is a connection of a controller.
type judged struct {
	conn  net.Conn
	from  string
	role  openflow.Role
	epoch uint64 // of its last role request that was granted
}

type judgedWrite struct {
	from  string
	epoch uint64
	taken bool
}

// connect keeps a connection to a controller until ctx ends.
func (j *judge) connect(ctx context.Context, address string) {
	for ctx.Err() == nil {
		conn, err := net.Dial("unix", address)
		if err == nil {
			c := &judged{conn: conn, from: address, role: openflow.RoleEqual}
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			j.mu.Lock()
			j.conns[c] = true
			j.mu.Unlock()
			j.serve(c)
			stop()
			conn.Close()
			j.mu.Lock()
			delete(j.conns, c)
			j.mu.Unlock()
		}
		pause(ctx, 10*time.Millisecond)
	}
}

func (j *judge) serve(c *judged) {
	send := func(b []byte, err error) {
		if err != nil {
			j.t.Error(err)
		}
		_, _ = c.conn.Write(b)
	}
	send(v13.AppendHello(nil, 1, v13), nil)
	in := bufio.NewReader(c.conn)
	for {
		head, err := in.Peek(openflow.HeaderLen)
		if err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(head[2:]))
		if _, err := io.ReadFull(in, msg); err != nil {
			return
		}
		h, err := openflow.ParseHeader(msg)
		if err != nil {
			j.t.Errorf("switch %v is sent nonsense: %v", j.dpid, err)
			return
		}
		refuse := func(typ, code uint16) {
			e := &openflow.Error{Type: typ, Code: code, Xid: h.Xid, Data: msg[:min(len(msg), 64)]}
			send(v13.AppendError(nil, h.Xid, e), nil)
		}
		switch h.Type {
		case openflow.TypeEchoRequest:
			send(v13.AppendEchoReply(nil, h.Xid, nil))
		case openflow.TypeFeaturesRequest:
			send(v13.AppendFeaturesReply(nil, h.Xid, &openflow.Features{DPID: j.dpid, Tables: 254}))
		case openflow.TypeBarrierRequest:
			send(v13.AppendBarrierReply(nil, h.Xid), nil)
		case openflow.TypeRoleRequest:
			if reply, ok := j.ask(c, msg); ok {
				send(reply, nil)
			} else {
				refuse(openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedStale)
			}
		case openflow.TypeMultipartRequest:
			var r openflow.MultipartRequest
			if err := v13.DecodeMultipartRequest(msg, &r); err != nil {
				j.t.Error(err)
			}
			var body []byte
			if r.Type == openflow.MultipartDesc {
				body = v13.AppendDesc(nil, &openflow.Desc{})
			}
			send(v13.AppendMultipartReply(nil, h.Xid, r.Type, false, body))
		case openflow.TypeHello, openflow.TypeSetConfig, openflow.TypeSetAsync, openflow.TypeEchoReply:
		default:
			if !j.program(c) {
				refuse(openflow.ErrBadRequest, openflow.BadRequestIsSlave)
			}
		}
	}
}

// ask deals with a role request (OpenFlow 1.3.5 §6.3.6).
func (j *judge) ask(c *judged, msg []byte) (reply []byte, ok bool) {
	role, generation, err := v13.DecodeRoleRequest(msg)
	if err != nil {
		j.t.Error(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if role == openflow.RoleMaster || role == openflow.RoleSlave {
		if j.generated && int64(generation-j.generation) < 0 {
			return nil, false
		}
		j.generation, j.generated = generation, true
		c.epoch = generation
	}
	if role == openflow.RoleMaster {
		for other := range j.conns {
			if other != c && other.role == openflow.RoleMaster {
				other.role = openflow.RoleSlave
			}
		}
	}
	if role != openflow.RoleNoChange {
		c.role = role
	}
	reply, err = v13.AppendRoleReply(nil, binary.BigEndian.Uint32(msg[4:]), c.role, j.generation)
	return reply, err == nil
}

// program logs a message that programs the switch; it reports whether the switch
// takes it. Nothing may be taken from an epoch below one that it has taken
// something from.
func (j *judge) program(c *judged) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	taken := c.role != openflow.RoleSlave
	j.writes = append(j.writes, judgedWrite{c.from, c.epoch, taken})
	switch {
	case !taken:
	case c.role != openflow.RoleMaster:
		j.t.Errorf("switch %v is programmed by %s, which is %v there", j.dpid, c.from, c.role)
	case c.epoch < j.highest:
		j.t.Errorf("switch %v takes a write of epoch %d after one of %d", j.dpid, c.epoch, j.highest)
	default:
		j.highest = c.epoch
	}
	return taken
}

// masters is how many connections are master, and from where one of them is.
func (j *judge) masters() (n int, from string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for c := range j.conns {
		if c.role == openflow.RoleMaster {
			n++
			from = c.from
		}
	}
	return n, from
}

// sharedLedger is a ledger in memory for several processes.
type sharedLedger struct {
	mu  sync.Mutex // guards what follows
	t   tenure
	rev uint64
}

// process is one that may be master, with its way to the store and to the
// switches in the hands of the test.
type process struct {
	name, address string
	ledger        *sharedLedger
	cancel        context.CancelFunc
	ended         chan error
	hub           *hub
	mastership    *mastership
	configure     func(*Config) // nil: as it is

	mu    sync.Mutex    // guards what follows
	awake chan struct{} // closed when it is; nil while it is
	cut   bool          // from the store
	late  time.Duration // answers of the store
	dead  bool
}

var errCut = errors.New("the store cannot be reached")

// here returns once the process is awake; it fails if it is dead.
func (p *process) here() error {
	for {
		p.mu.Lock()
		awake, dead := p.awake, p.dead
		p.mu.Unlock()
		switch {
		case dead:
			return errClosed
		case awake == nil:
			return nil
		}
		<-awake
	}
}

func (p *process) sleep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awake == nil {
		p.awake = make(chan struct{})
	}
}

func (p *process) wakeUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awake != nil {
		close(p.awake)
		p.awake = nil
	}
}

func (p *process) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *process) trip(ctx context.Context) error {
	p.mu.Lock()
	cut, late := p.cut, p.late
	p.mu.Unlock()
	if cut {
		<-ctx.Done()
		return errCut
	}
	if late > 0 && !pause(ctx, late) {
		return ctx.Err()
	}
	return p.here()
}

func (p *process) read(ctx context.Context) (tenure, uint64, error) {
	if err := p.trip(ctx); err != nil {
		return tenure{}, 0, err
	}
	p.ledger.mu.Lock()
	t, rev := p.ledger.t, p.ledger.rev
	p.ledger.mu.Unlock()
	return t, rev, p.trip(ctx)
}

func (p *process) swap(ctx context.Context, t tenure, over uint64) (uint64, bool, error) {
	if err := p.trip(ctx); err != nil {
		return 0, false, err
	}
	p.ledger.mu.Lock()
	done := p.ledger.rev == over
	if done {
		p.ledger.t, p.ledger.rev = t, over+1
	}
	rev := p.ledger.rev
	p.ledger.mu.Unlock()
	return rev, done, p.trip(ctx) // an answer that does not come back is of a write that may be done
}

// sleepingListener and sleepingConn do nothing while their process sleeps, and
// then go on where they were.
type sleepingListener struct {
	net.Listener
	p *process
}

func (l sleepingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return sleepingConn{conn, l.p}, nil
}

type sleepingConn struct {
	net.Conn
	p *process
}

func (c sleepingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if e := c.p.here(); e != nil {
		return 0, e
	}
	return n, err
}

func (c sleepingConn) Write(b []byte) (int, error) {
	if err := c.p.here(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// begin starts the process: it programs all switches as fast as they confirm,
// whenever it takes itself for their master.
func (p *process) begin(t *testing.T, place int, switches []dpid) {
	cfg := *defaults()
	cfg.Standbys, cfg.Standby, cfg.LeaseTime, cfg.LeaseRenew = 1, place, 240*time.Millisecond, 40*time.Millisecond
	cfg.EchoInterval, cfg.DeadAfter, cfg.ConfirmTimeout = 300*time.Millisecond, 800*time.Millisecond, 300*time.Millisecond
	if p.configure != nil {
		p.configure(&cfg)
	}
	log := slog.New(slog.DiscardHandler)
	m := newMastership(p, cfg.terms(), tenure{Holder: p.name, Run: fmt.Sprintf("%s %d", p.name, rand.Uint64())}, log)
	h := newHub(cfg, m.fence, log)
	h.open = func(dpid, func(*flow.Decision)) pipeline { return idle{} }
	h.switchChanged = func(*api.SwitchChanged) {}
	h.portChanged = func(*api.PortChanged) {}
	h.flowRemoved = func(*api.FlowRemoved) {}
	h.switchError = func(*api.SwitchError) {}
	h.surpassed = m.surpassed(h)
	os.Remove(p.address)
	l, err := net.Listen("unix", p.address)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.set(func() {
		p.hub, p.mastership, p.cancel, p.ended, p.dead, p.cut, p.late = h, m, cancel, make(chan error, 1), false, false, 0
	})
	go func() {
		err := h.run(ctx, m, []listener{{Listener: sleepingListener{l, p}}}, func(context.Context) error { return nil })
		cancel()
		p.ended <- err
	}()
	go func() {
		for n := uint16(0); ctx.Err() == nil; n++ {
			d := &flow.Decision{}
			for _, sw := range switches {
				addFlow(d, sw, 1+n%1000)
			}
			_, _ = h.apply(ctx, d)
			pause(ctx, 2*time.Millisecond)
		}
	}()
}

// kill ends the process as kill -9 does: it says nothing to anybody.
func (p *process) kill() {
	p.set(func() { p.dead = true })
	p.wakeUp()
	p.hub.mu.Lock()
	for conn := range p.hub.conns {
		conn.Close()
	}
	p.hub.mu.Unlock()
	p.cancel()
	<-p.ended
}

// TestNeverTwoMasters: processes are killed, stopped and woken, cut off from the
// store, and race for the mastership. No switch ever takes a write of an epoch
// lower than one that it has seen, and in the end one process is master of all.
func TestNeverTwoMasters(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			neverTwoMasters(t, seed)
		})
	}
}

func neverTwoMasters(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	switches := []dpid{1, 2, 3}
	ledger := &sharedLedger{}
	var processes []*process
	for i, name := range []string{"first", "standby", "standby-2"} {
		p := &process{name: name, address: filepath.Join(dir, name), ledger: ledger}
		processes = append(processes, p)
		p.begin(t, i, switches)
	}
	over, stop := context.WithCancel(context.Background())
	var connections sync.WaitGroup
	var judges []*judge
	for _, sw := range switches {
		j := &judge{t: t, dpid: sw, conns: map[*judged]bool{}}
		judges = append(judges, j)
		for _, p := range processes {
			connections.Go(func() { j.connect(over, p.address) })
		}
	}
	defer connections.Wait()
	defer stop()
	restart := func(i int) { // what the supervisor does for a process that ended by itself
		select {
		case <-processes[i].ended:
			processes[i].begin(t, i, switches)
		default:
		}
	}
	one := func() string {
		from := ""
		for _, j := range judges {
			n, at := j.masters()
			if n != 1 || from != "" && at != from {
				return ""
			}
			from = at
		}
		return from
	}
	for range 10 {
		i := r.IntN(len(processes))
		for k, p := range processes { // rather the master
			if p.mastership.fence.open() && r.IntN(3) > 0 {
				i = k
			}
		}
		p := processes[i]
		lasting := time.Duration(r.IntN(500)) * time.Millisecond
		switch r.IntN(5) {
		case 0:
			p.kill()
			if r.IntN(2) == 0 {
				pause(over, lasting)
			}
			p.begin(t, i, switches)
		case 1:
			p.sleep()
			pause(over, lasting)
			p.wakeUp()
		case 2:
			p.set(func() { p.cut = true })
			pause(over, lasting)
			p.set(func() { p.cut = false })
		case 3:
			p.set(func() { p.late = time.Duration(r.IntN(150)) * time.Millisecond })
			pause(over, lasting)
			p.set(func() { p.late = 0 })
		case 4: // all of them race for what nobody holds
			for _, p := range processes {
				p.sleep()
			}
			pause(over, lasting)
			for _, p := range processes {
				p.wakeUp()
			}
		}
		pause(over, time.Duration(r.IntN(300))*time.Millisecond)
		for i := range processes {
			restart(i)
		}
	}
	end := time.Now().Add(20 * time.Second)
	for settled := 0; settled < 10; pause(over, 20*time.Millisecond) { // it stays so
		for i := range processes {
			restart(i)
		}
		if settled++; one() == "" {
			settled = 0
		}
		if time.Now().After(end) {
			t.Fatal("the switches do not come to have one master, the same for all")
		}
	}
	holders := 0
	for _, p := range processes {
		if p.mastership.fence.open() {
			holders++
			if p.address != one() {
				t.Errorf("%s has the lease, and %s the switches", p.name, one())
			}
		}
	}
	if holders != 1 {
		t.Errorf("in the end %d processes hold the mastership", holders)
	}
	epochs := map[uint64]bool{}
	taken, refused := 0, 0
	for _, j := range judges {
		j.mu.Lock()
		for _, w := range j.writes {
			if w.taken {
				taken++
				epochs[w.epoch] = true
			} else {
				refused++
			}
		}
		j.mu.Unlock()
	}
	if taken < 100 || len(epochs) < 3 {
		t.Errorf("%d writes of %d masters: the test has shown nothing", taken, len(epochs))
	}
	t.Logf("%d writes of %d masters taken, %d of former ones refused", taken, len(epochs), refused)
	for _, p := range processes {
		p.cancel()
		<-p.ended
	}
}

// TestMove: a plan gives a switch to another partition, whose epochs are lower
// than those that the switch has seen. The new owner becomes its master over the
// session that it holds, under a higher one, and the former lets go of it then.
func TestMove(t *testing.T) {
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	over, stop := context.WithCancel(context.Background())
	var connections sync.WaitGroup
	defer connections.Wait()
	defer stop()
	j := &judge{t: t, dpid: 1, conns: map[*judged]bool{}}
	lists := func(own string, other string) partition {
		c := &Config{Switches: []string{own}, Elsewhere: map[string][]string{"other": {other}}}
		p, err := c.partition()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var sides []*process
	for i, name := range []string{"east", "west"} {
		p := &process{name: name, address: filepath.Join(dir, name), ledger: &sharedLedger{}}
		if i == 0 {
			p.ledger.t, p.ledger.rev = tenure{Epoch: 9_000_000_000, Released: true}, 1
		}
		p.configure = func(c *Config) {
			c.HoldOthers = true
			c.Switches, c.Elsewhere = []string{fmt.Sprint(1 + i)}, map[string][]string{"other": {fmt.Sprint(2 - i)}}
		}
		sides = append(sides, p)
		p.begin(t, 0, []dpid{1})
		connections.Go(func() { j.connect(over, p.address) })
	}
	east, west := sides[0], sides[1]
	until := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !so(); pause(over, 2*time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("it does not come to be that %s", what)
			}
		}
	}
	ownedBy := func(p *process) func() bool {
		return func() bool {
			n, from := j.masters()
			return n == 1 && from == p.address
		}
	}
	until("east is master, and west holds the switch ready", func() bool { return ownedBy(east)() && east.hub.session(1) != nil && west.hub.held() == 1 })
	west.hub.repartition(lists("1-2", "3"), time.Now())
	east.hub.repartition(lists("3", "1-2"), time.Now())
	if east.hub.session(1) == nil {
		t.Error("the former owner lets go before the new one is master")
	}
	until("west is master", ownedBy(west))
	until("west programs it", func() bool { return west.hub.session(1) != nil })
	until("east lets go of it, and holds it ready", func() bool { return east.hub.session(1) == nil && east.hub.held() == 1 })
	until("west's writes are of a higher epoch", func() bool { return j.highestWrite() > 9_000_000_001 })
	for _, p := range sides {
		p.cancel()
		<-p.ended
	}
}

func (j *judge) highestWrite() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.highest
}
