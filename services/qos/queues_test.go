package qos

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// database behaves as ovs-vsctl does for the few commands that are used.
type database struct {
	t      *testing.T
	dpid   string
	qos    string // of the port
	sum    string
	queues int
	calls  [][]string
}

const (
	ourQoS   = "11111111-1111-1111-1111-111111111111"
	theirQoS = "22222222-2222-2222-2222-222222222222"
	ourQueue = "33333333-3333-3333-3333-333333333333"
)

func (d *database) run(_ context.Context, args ...string) (string, error) {
	d.calls = append(d.calls, args)
	line := strings.Join(args, " ")
	switch {
	case args[0] == "port-to-br":
		return "br1\n", nil
	case args[0] == "get" && args[1] == "bridge":
		return `"` + d.dpid + `"` + "\n", nil
	case args[0] == "get" && args[1] == "port":
		if d.qos == "" {
			return "[]\n", nil
		}
		return d.qos + "\n", nil
	case slices.Contains(args, "find"):
		if d.qos != ourQoS {
			return "", nil
		}
		return `{"data":[[["uuid","` + ourQoS + `"],["map",[["weft-port","` + sw1 + `/1"],["weft-sum","` + d.sum + `"]]],["map",[[1,["uuid","` + ourQueue + `"]]]]]],"headings":["_uuid","external_ids","queues"]}`, nil
	case args[0] == "set" && args[1] == "port":
		d.qos = ourQoS
		_, rest, _ := strings.Cut(line, `weft-sum="`)
		d.sum, _, _ = strings.Cut(rest, `"`)
		d.queues = strings.Count(line, "create queue")
		return "", nil
	case slices.Contains(args, "clear"):
		d.qos, d.sum, d.queues = "", "", 0
		return "", nil
	}
	return "", errors.New("unknown command: " + line)
}

func TestBring(t *testing.T) {
	ctx := context.Background()
	d := &database{t: t, dpid: sw1}
	m, err := readQueues(&api.QosQueues{Dpid: "1", Port: 1, MaxKbps: 10_000, Queues: []*api.QosQueue{{Id: 1, MinKbps: 5, MaxKbps: 20, BurstBytes: 100, Priority: 2}, {Id: 0}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := bring(ctx, d.run, m, "s1-h1"); err != nil || d.queues != 2 {
		t.Fatalf("%v, %d queues", err, d.queues)
	}
	last := strings.Join(d.calls[len(d.calls)-1], " ")
	for _, want := range []string{"set port s1-h1 qos=@qos", "type=linux-htb", "other-config:max-rate=10000000", "queues:1=@q1", "other-config:min-rate=5000", "other-config:burst=800", "other-config:priority=2"} {
		if !strings.Contains(last, want) {
			t.Errorf("%q is not in %q", want, last)
		}
	}
	n := len(d.calls)
	if err := bring(ctx, d.run, m, "s1-h1"); err != nil || strings.HasPrefix(strings.Join(d.calls[len(d.calls)-1], " "), "set") || len(d.calls) != n+4 {
		t.Errorf("the same again changes something: %v %q", err, d.calls[n:])
	}
	m.Queues = m.Queues[:1]
	if err := bring(ctx, d.run, m, "s1-h1"); err != nil || d.queues != 1 || !strings.Contains(strings.Join(d.calls[len(d.calls)-1], " "), "destroy queue "+ourQueue) {
		t.Errorf("another set: %v, %d queues", err, d.queues)
	}
	m.State = removing
	if err := bring(ctx, d.run, m, "s1-h1"); err != nil || d.qos != "" {
		t.Errorf("removed: %v, %q", err, d.qos)
	}
	m.State = ""
	d.qos = theirQoS
	if err := bring(ctx, d.run, m, "s1-h1"); err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("another's queues: %v", err)
	}
	d.dpid = sw2
	if err := bring(ctx, d.run, m, "s1-h1"); err == nil || !strings.Contains(err.Error(), sw2) {
		t.Errorf("another's port: %v", err)
	}
}

// CVE-2019-13624, text from outside gets to a shell or is taken for an option:
// what the switch calls its ports is passed on only if it is one plain word, all
// else that is passed on are numbers, and there is no shell.
func TestCVE_2019_13624_PortNames(t *testing.T) {
	ctx := context.Background()
	d := &database{t: t, dpid: sw1}
	m := &api.QosQueues{Dpid: sw1, Port: 1, Queues: []*api.QosQueue{{Id: 1}}}
	n := len(d.calls)
	for _, name := range []string{"--db=tcp:10.0.0.1:1", "a b", "a;reboot", "", "a'b"} {
		if err := bring(ctx, d.run, m, name); err == nil {
			t.Errorf("port %q is passed on", name)
		}
	}
	if len(d.calls) != n {
		t.Errorf("run for names that cannot be passed on: %q", d.calls[n:])
	}
}

func TestPorts(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	store := wefttest.NewStore()
	bucket, _ := store.Bucket(ctx, "qos.queues")
	var mu sync.Mutex // guards the following
	fail := errors.New("no answer")
	var tried []string
	answer := func(err error) { mu.Lock(); defer mu.Unlock(); fail = err }
	try := func(_ context.Context, m *api.QosQueues) error {
		mu.Lock()
		defer mu.Unlock()
		tried = append(tried, m.State)
		return fail
	}
	bad := func(key string, err error) { t.Error(key, err) }
	p := newPorts(bucket, time.Now, try, bad)
	done := make(chan struct{})
	go func() { p.run(ctx); close(done) }()
	m := &api.QosQueues{Dpid: "1", Port: 1, Queues: []*api.QosQueue{{Id: 1}}}
	key, err := p.set(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	p.settle(ctx, key)
	if l := p.list(key); l[0].State != failing || l[0].Reason != "no answer" {
		t.Fatalf("%v", l)
	}
	answer(nil)
	p.again(key)
	testwait.Until(t, "configured", func() bool { return p.list(key)[0].State == configured })
	answer(errors.New("away"))
	if _, there, err := p.remove(ctx, "1", 1); err != nil || !there {
		t.Fatal(there, err)
	}
	p.settle(ctx, key)
	cancel()
	<-done
	// A later run takes away what the earlier could not.
	ctx, cancel = context.WithCancel(context.Background())
	answer(nil)
	later := newPorts(bucket, time.Now, try, bad)
	if err := later.queues.Load(ctx); err != nil {
		t.Fatal(err)
	}
	done = make(chan struct{})
	go func() { later.run(ctx); close(done) }()
	testwait.Until(t, "gone", func() bool { return len(later.list("")) == 0 })
	cancel()
	<-done
	if tried[len(tried)-1] != removing {
		t.Errorf("tried %q", tried)
	}
	for _, bad := range []*api.QosQueues{nil, {}, {Dpid: "1", Port: 1}, {Dpid: "x", Port: 1, Queues: m.Queues}, {Dpid: "1", Queues: m.Queues},
		{Dpid: "1", Port: 1, Queues: []*api.QosQueue{{Id: 1}, {Id: 1}}}, {Dpid: "1", Port: 1, Queues: []*api.QosQueue{{MinKbps: 5, MaxKbps: 4}}},
		{Dpid: "1", Port: 1, Queues: []*api.QosQueue{{Id: 1 << 30}}}, {Dpid: "1", Port: 1, Queues: []*api.QosQueue{{Priority: 9}}}} {
		if _, err := readQueues(bad); err == nil {
			t.Errorf("taken: %v", bad)
		}
	}
}

func TestVSCtl(t *testing.T) {
	cfg := DefaultConfig()
	cfg.VSCtl, cfg.VSCtlTimeout = "sleep", 200*time.Millisecond
	if _, err := vsctlOf(cfg, "tcp:127.0.0.1:1")(t.Context(), "60"); err == nil {
		t.Error("options are not refused by a program that has none")
	}
	cfg.VSCtl = "echo"
	out, err := vsctlOf(cfg, "unix:/x/db.sock")(t.Context(), "get", "port", "a;b")
	if want := "--db=unix:/x/db.sock --timeout=1 --no-syslog --format=json -- get port a;b\n"; err != nil || out != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

func TestConfig(t *testing.T) {
	good := DefaultConfig()
	good.OVSDB, good.OVSDBSwitches = "tcp:{address}:6640", map[string]string{"2": "unix:/run/{dpid}.sock"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for sw, want := range map[string]string{sw1: "tcp:[::1]:6640", sw2: "unix:/run/" + sw2 + ".sock"} {
		d, _ := (&api.Location{Dpid: sw, Port: 1}).Flow(), 0
		if got, ok := good.database(d.Switch, netip.IPv6Loopback()); !ok || got != want {
			t.Errorf("database of %s: %q, want %q", sw, got, want)
		}
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.OVSDB = "http://x" }, func(c *Config) { c.OVSDB = "tcp:{host}:1" }, func(c *Config) { c.OVSDB = "tcp:a:1 --x" },
		func(c *Config) { c.OVSDBSwitches = map[string]string{"z": "tcp:a:1"} }, func(c *Config) { c.OVSDBSwitches = map[string]string{"1": ""} },
		func(c *Config) { c.VSCtl = "" }, func(c *Config) { c.VSCtl = "--x" }, func(c *Config) { c.VSCtlOptions = []string{"x"} }, func(c *Config) { c.VSCtlTimeout = 0 },
		func(c *Config) { c.Policies = 0 }, func(c *Config) { c.Entries = 1 << 20 }, func(c *Config) { c.Deadline = time.Hour },
	} {
		c := DefaultConfig()
		change(c)
		if c.Validate() == nil {
			t.Errorf("taken: %+v", c)
		}
	}
}
