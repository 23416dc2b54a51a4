package openflow

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
)

// vswitch is an Open vSwitch of this test's own, with the dummy datapath, that
// touches nothing of the system's.
type vswitch struct {
	t   *testing.T
	dir string
}

func startVswitch(t *testing.T) *vswitch {
	dir, err := os.MkdirTemp("", "weft-ovs") // t.TempDir is too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &vswitch{t, dir}
	t.Cleanup(s.stop)
	s.run("ovsdb-tool", "create", dir+"/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
	s.run("ovsdb-server", dir+"/conf.db", "--remote=punix:"+dir+"/db.sock", "--unixctl="+dir+"/ovsdb.ctl",
		"--pidfile="+dir+"/ovsdb-server.pid", "--log-file="+dir+"/ovsdb-server.log", "-vconsole:off", "--no-chdir", "--detach")
	s.vsctl("--no-wait", "init")
	s.run("ovs-vswitchd", "unix:"+dir+"/db.sock", "--enable-dummy", "--unixctl="+dir+"/vswitchd.ctl",
		"--pidfile="+dir+"/ovs-vswitchd.pid", "--log-file="+dir+"/ovs-vswitchd.log", "-vconsole:off", "--no-chdir", "--detach")
	s.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "fail_mode=secure",
		"protocols=OpenFlow10,OpenFlow13", "other_config:datapath-id=00000000000000a1", "other_config:disable-in-band=true")
	s.vsctl("add-port", "br0", "p1", "--", "set", "interface", "p1", "type=dummy", "ofport_request=1")
	return s
}

func (s *vswitch) run(program string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+s.dir, "OVS_DBDIR="+s.dir, "OVS_LOGDIR="+s.dir, "OVS_SYSCONFDIR="+s.dir)
	out, err := cmd.Output() // a daemon keeps stderr open, so that waiting for its end would not end
	if err != nil {
		s.t.Fatalf("%s %s: %v (this test needs openvswitch-switch and root)", program, strings.Join(args, " "), err)
	}
	return string(out)
}

func (s *vswitch) vsctl(args ...string) {
	s.t.Helper()
	s.run("ovs-vsctl", append([]string{"--db=unix:" + s.dir + "/db.sock"}, args...)...)
}

// stop ends the daemons that were started here, by their process ids.
func (s *vswitch) stop() {
	for _, name := range []string{"ovs-vswitchd", "ovsdb-server"} {
		file := filepath.Join(s.dir, name+".pid")
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGTERM)
		for range 200 {
			if _, err := os.Stat(file); err != nil {
				break // the daemon removes it as it ends
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	_ = os.RemoveAll(s.dir)
}

// session is a controller's connection to the switch.
type session struct {
	t *testing.T
	v Version
	c net.Conn
	r *bufio.Reader
}

func (s *vswitch) connect(v Version) *session {
	c, err := net.Dial("unix", s.dir+"/br0.mgmt")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(testwait.Limit))
	k := &session{s.t, v, c, bufio.NewReader(c)}
	k.send(v.AppendHello(nil, 1, v), nil)
	if offered, err := DecodeHello(k.next(TypeHello)); err != nil || !offered.Has(v) {
		s.t.Fatalf("hello: %b, %v", offered, err)
	}
	return k
}

func (k *session) send(msg []byte, err error) {
	k.t.Helper()
	if err == nil {
		_, err = k.c.Write(msg)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// next returns the next message of a type, passing over others but errors.
func (k *session) next(want Type) []byte {
	k.t.Helper()
	for {
		head, err := k.r.Peek(HeaderLen)
		if err != nil {
			k.t.Fatalf("waiting for %s: %v", want, err)
		}
		h, err := ParseHeader(head)
		if err != nil {
			k.t.Fatal(err)
		}
		msg := make([]byte, h.Length)
		if _, err := io.ReadFull(k.r, msg); err != nil {
			k.t.Fatal(err)
		}
		if h.Type == want {
			return msg
		}
		if h.Type == TypeError {
			e, _ := k.v.DecodeError(msg)
			k.t.Fatalf("waiting for %s: %v, %x", want, &e, e.Data)
		}
	}
}

func (k *session) barrier() {
	k.t.Helper()
	k.send(k.v.AppendBarrierRequest(nil, 77), nil)
	k.next(TypeBarrierReply)
}

// ask sends a multipart request and returns the body of its only reply.
func (k *session) ask(r *MultipartRequest) []byte {
	k.t.Helper()
	k.send(k.v.AppendMultipartRequest(nil, 9, r))
	reply, err := k.v.DecodeMultipartReply(k.next(TypeMultipartReply))
	if err != nil || reply.Type != r.Type {
		k.t.Fatalf("reply %d to %s: %v", reply.Type, r.Type, err)
	}
	return reply.Body
}

func check(t *testing.T, what string, ok bool, err error, got any) {
	t.Helper()
	if err != nil || !ok {
		t.Errorf("%s: %+v, %v", what, got, err)
	}
}

// TestAgainstOpenVSwitch runs every message that matters to a controller
// against a real switch, in both versions.
func TestAgainstOpenVSwitch(t *testing.T) {
	s := startVswitch(t)
	for _, ver := range versions {
		t.Run(ver.name, func(t *testing.T) {
			s.t = t
			k := s.connect(ver.v)
			handshake(t, k)
			flows(t, k)
			packets(t, k)
			ports(t, s, k)
			if ver.v == V13 {
				groupsAndMeters(t, k)
				rolesAndTables(t, k)
				foreign(t, s, k)
			}
			refusal(t, k)
		})
	}
}

func handshake(t *testing.T, k *session) {
	v := k.v
	k.send(v.AppendFeaturesRequest(nil, 2), nil)
	f, err := v.DecodeFeaturesReply(k.next(TypeFeaturesReply))
	check(t, "features", f.DPID == 0xa1 && f.Tables == 254 && f.Capabilities&CapFlowStats != 0 && (v == V13) == (len(f.Ports) == 0), err, f)
	k.send(v.AppendSetConfig(nil, 3, FragNormal, 200), nil)
	k.send(v.AppendGetConfigRequest(nil, 4), nil)
	_, miss, err := v.DecodeConfig(k.next(TypeGetConfigReply))
	check(t, "configuration", miss == 200, err, miss)
	k.send(v.AppendEchoRequest(nil, 5, []byte("weft")))
	if echo := k.next(TypeEchoReply); string(echo[HeaderLen:]) != "weft" {
		t.Errorf("echo %x", echo)
	}
	d, err := v.DecodeDesc(k.ask(&MultipartRequest{Type: MultipartDesc}))
	check(t, "description", d.Hardware == "Open vSwitch", err, d)
}

func flows(t *testing.T, k *session) {
	v := k.v
	k.send(v.AppendFlowMod(nil, 10, &flow.Mod{Command: flow.Delete, Entry: flow.Entry{Table: flow.TableAll}, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}))
	m := add(flow.Match{}.WithInPort(1).WithIPv4Dst(ip("10.1.0.0/16")).WithTCPDst(80), flow.SetEthDst(macA), flow.Output(2), flow.Output(flow.PortController))
	m.Entry.Flags = flow.FlagSendRem
	k.send(v.AppendFlowMod(nil, 11, &m))
	k.barrier()
	all := MultipartRequest{Type: MultipartFlow, Table: flow.TableAll, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
	var got []FlowStats
	err := v.DecodeFlowStats(k.ask(&all), func(s *FlowStats) error {
		c := *s
		c.Entry = s.Entry.Clone()
		got = append(got, c)
		return nil
	})
	want := m.Entry
	if v == V10 {
		want.Flags = 0
	}
	check(t, "flow statistics", len(got) == 1 && !got[0].Partial && same(reflect.ValueOf(got[0].Entry), reflect.ValueOf(want)), err, got)
	all.Type = MultipartAggregate
	a, err := v.DecodeAggregate(k.ask(&all))
	check(t, "aggregate", a.Flows == 1, err, a)
	tables, err := v.DecodeTableStats(k.ask(&MultipartRequest{Type: MultipartTable}), nil)
	check(t, "table statistics", len(tables) == 254 && tables[0].Active == 1, err, len(tables))

	m.Command = flow.DeleteStrict
	if v == V10 {
		m.Entry.Flags = 0
	}
	k.send(v.AppendFlowMod(nil, 12, &m))
	var r FlowRemoved
	err = v.DecodeFlowRemoved(k.next(TypeFlowRemoved), &r)
	check(t, "flow removed", r.Reason == RemovedDelete && r.Match == m.Entry.Match && r.Cookie == m.Entry.Cookie && r.Priority == 1000 && r.IdleTimeout == 10, err, r)
}

func packets(t *testing.T, k *session) {
	v := k.v
	o := flow.PacketOut{BufferID: flow.BufferNone, InPort: 1, Actions: []flow.Action{flow.Output(flow.PortController)}, Data: frame()}
	k.send(v.AppendPacketOut(nil, 20, &o))
	var in flow.PacketIn
	err := v.DecodePacketIn(k.next(TypePacketIn), &in)
	check(t, "packet-in", in.Key.InPort == 1 && in.Reason == flow.ReasonAction && in.BufferID == flow.BufferNone && string(in.Data) == string(frame()), err, in)
}

func ports(t *testing.T, s *vswitch, k *session) {
	v := k.v
	s.vsctl("add-port", "br0", "p2", "--", "set", "interface", "p2", "type=dummy", "ofport_request=2")
	reason, p, err := v.DecodePortStatus(k.next(TypePortStatus))
	check(t, "port status", reason == PortAdded && p.No == 2 && p.Name == "p2", err, p)
	k.send(v.AppendPortMod(nil, 31, &PortMod{Port: 2, HWAddr: p.HWAddr, Config: PortConfigDown, Mask: PortConfigDown}))
	for p.Config&PortConfigDown == 0 && err == nil {
		_, p, err = v.DecodePortStatus(k.next(TypePortStatus))
	}
	check(t, "port-mod", !p.Up(), err, p)
	stats, err := v.DecodePortStats(k.ask(&MultipartRequest{Type: MultipartPortStats, Port: flow.PortAny}), nil)
	check(t, "port statistics", len(stats) == 3, err, stats)
	queues, err := v.DecodeQueueStats(k.ask(&MultipartRequest{Type: MultipartQueue, Port: flow.PortAny, Queue: QueueAll}), nil)
	check(t, "queue statistics", len(queues) == 3 && queues[1].Port == 1 && queues[1].TxBytes == ^uint64(0), err, queues)
	k.send(v.AppendQueueGetConfigRequest(nil, 33, 1))
	port, list, err := v.DecodeQueueGetConfigReply(k.next(TypeQueueGetConfigReply))
	check(t, "queues", port == 1 && len(list) == 1 && list[0].MinRate == QueueRateNone, err, list)
	if v == V13 {
		descs, err := v.DecodePortDesc(k.ask(&MultipartRequest{Type: MultipartPortDesc}), nil)
		check(t, "port descriptions", len(descs) == 3, err, descs)
	}
	s.vsctl("del-port", "br0", "p2")
	for reason != PortDeleted && err == nil {
		reason, p, err = v.DecodePortStatus(k.next(TypePortStatus))
	}
	check(t, "port status", p.No == 2, err, p)
}

func groupsAndMeters(t *testing.T, k *session) {
	v := k.v
	group := flow.Group{Kind: flow.GroupKindSelect, ID: 6, Buckets: []flow.Bucket{
		{Weight: 3, WatchPort: flow.PortAny, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.SetEthDst(macA), flow.Output(1)}}}}
	meter := flow.Meter{ID: 5, Flags: MeterFlagKbps | MeterFlagBurst | MeterFlagStats, Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: 2000, BurstSize: 200}}}
	k.send(v.AppendGroupMod(nil, 40, &flow.GroupMod{Group: group}))
	k.send(v.AppendMeterMod(nil, 41, &flow.MeterMod{Meter: meter}))
	m := add(flow.Match{}, flow.ToGroup(6))
	m.Entry.Meter, m.Entry.Goto, m.Entry.Clear, m.Entry.Metadata, m.Entry.MetaMask = 5, 3, true, 0x10, 0xf0
	m.Entry.HasWrite, m.Entry.Write = true, []flow.Action{flow.Output(1)}
	k.send(v.AppendFlowMod(nil, 42, &m))
	k.barrier()
	groups, err := v.DecodeGroupDesc(k.ask(&MultipartRequest{Type: MultipartGroupDesc}), nil)
	check(t, "group description", same(reflect.ValueOf(groups), reflect.ValueOf([]flow.Group{group})), err, groups)
	gs, err := v.DecodeGroupStats(k.ask(&MultipartRequest{Type: MultipartGroup, Group: flow.GroupAll}), nil)
	check(t, "group statistics", len(gs) == 1 && gs[0].ID == 6 && gs[0].RefCount == 1 && len(gs[0].Buckets) == 1, err, gs)
	gf, err := v.DecodeGroupFeatures(k.ask(&MultipartRequest{Type: MultipartGroupFeatures}))
	check(t, "group features", gf.Types == 15, err, gf)
	meters, err := v.DecodeMeterConfig(k.ask(&MultipartRequest{Type: MultipartMeterConfig, Meter: flow.MeterAll}), nil)
	check(t, "meter configuration", same(reflect.ValueOf(meters), reflect.ValueOf([]flow.Meter{meter})), err, meters)
	ms, err := v.DecodeMeterStats(k.ask(&MultipartRequest{Type: MultipartMeter, Meter: 5}), nil)
	check(t, "meter statistics", len(ms) == 1 && ms[0].ID == 5 && len(ms[0].Bands) == 1, err, ms)
	mf, err := v.DecodeMeterFeatures(k.ask(&MultipartRequest{Type: MultipartMeterFeatures}))
	check(t, "meter features", mf.BandTypes&(1<<flow.MeterDrop) != 0, err, mf)
	found := false
	err = v.DecodeFlowStats(k.ask(&MultipartRequest{Type: MultipartFlow, Table: 0, OutPort: flow.PortAny, OutGroup: 6}), func(s *FlowStats) error {
		found = same(reflect.ValueOf(s.Entry), reflect.ValueOf(m.Entry))
		return nil
	})
	check(t, "every instruction", found, err, m)
	k.send(v.AppendGroupMod(nil, 43, &flow.GroupMod{Command: flow.Delete, Group: flow.Group{ID: flow.GroupAll}}))
	k.send(v.AppendMeterMod(nil, 44, &flow.MeterMod{Command: flow.Delete, Meter: flow.Meter{ID: flow.MeterAll}}))
	k.barrier()
}

func rolesAndTables(t *testing.T, k *session) {
	v := k.v
	k.send(v.AppendRoleRequest(nil, 50, RoleMaster, 7))
	r, generation, err := v.DecodeRoleReply(k.next(TypeRoleReply))
	check(t, "role", r == RoleMaster && generation == 7, err, r)
	want := Async{PacketIn: [2]uint32{3, 0}, PortStatus: [2]uint32{7, 7}, FlowRemoved: [2]uint32{15, 0}}
	k.send(v.AppendSetAsync(nil, 51, &want))
	k.send(v.AppendGetAsyncRequest(nil, 52))
	a, err := v.DecodeGetAsync(k.next(TypeGetAsyncReply))
	check(t, "asynchronous configuration", a == want, err, a)
	k.send(v.AppendTableMod(nil, 53, &TableMod{Table: 3}))
	k.barrier()
	k.send(v.AppendMultipartRequest(nil, 54, &MultipartRequest{Type: MultipartTableFeatures}))
	var tables []TableFeatures
	for more := true; more && err == nil; {
		var reply MultipartReply
		if reply, err = v.DecodeMultipartReply(k.next(TypeMultipartReply)); err == nil {
			more = reply.More
			tables, err = v.DecodeTableFeatures(reply.Body, tables)
		}
	}
	check(t, "table features", len(tables) == 254 && tables[0].Match.Has(flow.FieldIPv6Dst) && tables[0].Maskable.Has(flow.FieldIPv6Dst) &&
		tables[0].NextTables.Has(1) && !tables[1].NextTables.Has(1) && tables[0].ApplyActions&(1<<flow.ActionPushVLAN) != 0, err, len(tables))
}

// foreign reads entries that use what only Open vSwitch has.
func foreign(t *testing.T, s *vswitch, k *session) {
	v := k.v
	s.run("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "unix:"+s.dir+"/br0.mgmt", "table=200,priority=7,in_port=1,reg0=5,ct_state=+trk,actions=output:1")
	s.run("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "unix:"+s.dir+"/br0.mgmt", "table=200,priority=8,in_port=2,actions=load:1->NXM_NX_REG0[],output:1")
	n := 0
	err := v.DecodeFlowStats(k.ask(&MultipartRequest{Type: MultipartFlow, Table: 200, OutPort: flow.PortAny, OutGroup: flow.GroupAny}), func(s *FlowStats) error {
		n++
		if s.Priority == 7 && (!s.Partial || !s.Match.Set.Has(flow.FieldInPort)) {
			t.Errorf("registers: %+v", s)
		}
		if s.Priority == 8 && (s.Partial || len(s.Apply) != 2 || s.Apply[0].Kind != flow.ActionExperimenter || s.Apply[0].Arg != 0x2320) {
			t.Errorf("an action of Nicira's: %+v", s)
		}
		return nil
	})
	check(t, "foreign entries", n == 2, err, n)
	// a packet-in whose match has registers and connection tracking besides
	s.run("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "unix:"+s.dir+"/br0.mgmt", "table=0,priority=9,in_port=1,actions=load:1->NXM_NX_REG0[],set_field:0x99->tun_id,write_metadata:0x42,goto_table:201")
	s.run("ovs-ofctl", "-O", "OpenFlow13", "add-flow", "unix:"+s.dir+"/br0.mgmt", "table=201,priority=9,cookie=0x33,actions=CONTROLLER:65535")
	k.send(v.AppendPacketOut(nil, 60, &flow.PacketOut{BufferID: flow.BufferNone, InPort: 1, Actions: []flow.Action{flow.Output(flow.PortTable)}, Data: frame()}))
	var in flow.PacketIn
	err = v.DecodePacketIn(k.next(TypePacketIn), &in)
	check(t, "packet-in with registers", in.Key.InPort == 1 && in.Key.TunnelID == 0x99 && in.Key.Metadata == 0x42 && in.Table == 201 && in.Cookie == 0x33 && len(in.Data) == 60, err, in)
}

func refusal(t *testing.T, k *session) {
	v := k.v
	bad := add(flow.Match{}, kind(flow.ActionOutput, uint32(flow.PortAny)))
	k.send(v.AppendFlowMod(nil, 90, &bad))
	e, err := v.DecodeError(k.next(TypeError))
	check(t, "refused flow-mod", e.Type == ErrBadAction && e.Code == BadActionBadOutPort && e.Xid == 90 && len(e.Data) >= 64, err, e)
	var refused flow.Mod
	if err := v.DecodeFlowMod(e.Data, &refused); err != nil && !errors.As(err, new(*MalformedError)) {
		t.Error(err)
	}
	if !strings.Contains(e.Error(), "OFPBAC_BAD_OUT_PORT") {
		t.Error(e.Error())
	}
	k.send(v.AppendExperimenter(nil, 91, &Experimenter{ID: 0x5765, Data: []byte{0, 0, 0, 9}}))
	e, err = v.DecodeError(k.next(TypeError))
	check(t, "refused experimenter", e.Type == ErrBadRequest && e.Code == BadRequestBadExperimenter && e.Xid == 91, err, e)
}
