package sim

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

// each runs a test for both versions.
func each(t *testing.T, f func(t *testing.T, v openflow.Version)) {
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) { f(t, v) })
	}
}

// only starts a network and returns its only switch.
func only(t *testing.T, v openflow.Version, topo *Topology, cfg Config) (*session, *Network) {
	t.Helper()
	c := newController(t)
	cfg.Topology, cfg.Version, cfg.Address = topo, v, c.address()
	n := start(t, cfg)
	return c.open(v), n
}

func TestHandshake(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		c := newController(t)
		start(t, Config{Topology: isolated(t, 1, 4, 2), Version: v, Address: c.address()})
		s := c.accept(v)
		hello := s.expect(openflow.TypeHello)
		if offered, err := openflow.DecodeHello(hello); err != nil || openflow.Version(hello[0]) != v || !offered.Has(v) {
			t.Fatalf("hello %x: %v, %v", hello, offered, err)
		}
		s.send(v.AppendHello(nil, 1, v), nil)
		s.send(v.AppendFeaturesRequest(nil, 7), nil)
		msg := s.expect(openflow.TypeFeaturesReply)
		if h, _ := openflow.ParseHeader(msg); h.Xid != 7 {
			t.Errorf("features reply has xid %d, want 7", h.Xid)
		}
		f, err := v.DecodeFeaturesReply(msg)
		if err != nil || f.DPID != 1 {
			t.Fatalf("features %+v, %v", f, err)
		}
		ports := f.Ports
		if v == openflow.V13 {
			s.parts(&openflow.MultipartRequest{Type: openflow.MultipartPortDesc}, func(body []byte) (err error) {
				ports, err = v.DecodePortDesc(body, ports)
				return err
			})
		}
		if len(ports) != 2 || ports[0].No != 1 || ports[1].No != 2 || !ports[0].Up() || ports[0].HWAddr == ports[1].HWAddr {
			t.Errorf("ports %+v", ports)
		}
		s.send(v.AppendSetConfig(nil, 8, 0, 0xffff), nil)
		s.send(v.AppendGetConfigRequest(nil, 9), nil)
		if _, miss, err := v.DecodeConfig(s.expect(openflow.TypeGetConfigReply)); err != nil || miss != 0xffff {
			t.Errorf("miss_send_len %d, %v, want 65535", miss, err)
		}
		s.send(v.AppendEchoRequest(nil, 10, []byte("ping")))
		if echo := s.expect(openflow.TypeEchoReply); string(echo[8:]) != "ping" {
			t.Errorf("echo reply %x", echo)
		}
		if rest := s.fence(); len(rest) != 0 {
			t.Errorf("%d messages nobody asked for: %x", len(rest), rest)
		}
	})
}

func TestRolesAndAsyncConfig(t *testing.T) {
	v := openflow.V13
	s, n := only(t, v, isolated(t, 1, 4, 2), Config{})
	role := func(r openflow.Role, generation uint64) {
		s.send(v.AppendRoleRequest(nil, 1, r, generation))
	}
	role(openflow.RoleMaster, 5)
	if r, g, err := v.DecodeRoleReply(s.expect(openflow.TypeRoleReply)); err != nil || r != openflow.RoleMaster || g != 5 {
		t.Errorf("role %v generation %d, %v", r, g, err)
	}
	role(openflow.RoleMaster, 4)
	s.expectError(openflow.ErrRoleRequestFailed, openflow.RoleRequestFailedStale)
	role(openflow.RoleSlave, 6)
	s.expect(openflow.TypeRoleReply)
	s.mod(adding(1, 1, flow.Match{}))
	s.expectError(openflow.ErrBadRequest, openflow.BadRequestIsSlave)
	role(openflow.RoleEqual, 0)
	s.expect(openflow.TypeRoleReply)

	quiet := openflow.Async{}
	s.send(v.AppendSetAsync(nil, 2, &quiet))
	s.send(v.AppendGetAsyncRequest(nil, 3))
	if a, err := v.DecodeGetAsync(s.expect(openflow.TypeGetAsyncReply)); err != nil || a != quiet {
		t.Errorf("async %+v, %v", a, err)
	}
	if err := n.SetPort(within(t, testwait.Limit), End{0, 1}, false); err != nil {
		t.Fatal(err)
	}
	if rest := s.fence(); len(rest) != 0 {
		t.Errorf("%v in spite of the async configuration", typeOf(t, rest[0]))
	}
}

func TestEntriesAreReadBackAsInstalled(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		s, _ := only(t, v, isolated(t, 1, 4, 2), Config{Entries: 3})
		host := flow.Match{}.WithEthDst(flow.MAC{2, 0, 0, 0, 0, 9})
		s.mod(adding(10, 0x5745_0001, host, flow.Output(2)))
		s.mod(adding(0, 0x5745_0002, flow.Match{}, flow.Output(flow.PortController)))
		s.mod(adding(10, 0x5745_0003, host, flow.Output(1))) // replaces the first
		s.mod(adding(20, 0x5745_0004, host.WithInPort(1), flow.Output(2)))
		s.mod(adding(30, 0x5745_0005, host.WithInPort(2), flow.Output(2)))
		s.expectError(openflow.ErrFlowModFailed, openflow.FlowModFailedTableFull)
		got := map[flow.EntryKey]openflow.FlowStats{}
		for _, f := range s.flows(openflow.MultipartRequest{}) {
			got[f.Entry.Key()] = f
		}
		if len(got) != 3 {
			t.Fatalf("%d entries, want 3", len(got))
		}
		f := got[flow.EntryKey{Priority: 10, Match: host}]
		if f.Cookie != 0x5745_0003 || len(f.Apply) != 1 || f.Apply[0].Arg != 1 {
			t.Errorf("entry %+v: not the one installed last", f.Entry)
		}
		s.parts(&openflow.MultipartRequest{Type: openflow.MultipartAggregate, Table: flow.TableAll, OutPort: flow.PortAny, OutGroup: flow.GroupAny}, func(body []byte) error {
			a, err := v.DecodeAggregate(body)
			if a.Flows != 3 {
				t.Errorf("aggregate of %d entries, want 3", a.Flows)
			}
			return err
		})
		del := adding(0, 0, flow.Match{}.WithEthDst(flow.MAC{2, 0, 0, 0, 0, 9}))
		del.Command, del.Entry.Table = flow.Delete, flow.TableAll
		if v == openflow.V10 {
			del.Entry.Table = 0
		}
		s.mod(del)
		if left := s.flows(openflow.MultipartRequest{}); len(left) != 1 || left[0].Priority != 0 {
			t.Errorf("after a delete of all that match %v: %d entries", del.Entry.Match, len(left))
		}
	})
}

func TestFlowRemovedIsSent(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		s, _ := only(t, v, isolated(t, 1, 4, 2), Config{})
		m := adding(7, 0x77, flow.Match{}.WithInPort(1), flow.Output(2))
		m.Entry.Flags = flow.FlagSendRem
		s.mod(m)
		m.Command = flow.DeleteStrict
		s.mod(m)
		var r openflow.FlowRemoved
		if err := v.DecodeFlowRemoved(s.expect(openflow.TypeFlowRemoved), &r); err != nil || r.Cookie != 0x77 || r.Reason != openflow.RemovedDelete {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestStatistics(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		s, _ := only(t, v, isolated(t, 1, 300, 300), Config{})
		s.parts(&openflow.MultipartRequest{Type: openflow.MultipartDesc}, func(body []byte) error {
			d, err := v.DecodeDesc(body)
			if d.Hardware != "simulated switch" {
				t.Errorf("description %+v", d)
			}
			return err
		})
		var ports []openflow.PortStats
		s.parts(&openflow.MultipartRequest{Type: openflow.MultipartPortStats, Port: flow.PortAny}, func(body []byte) (err error) {
			ports, err = v.DecodePortStats(body, ports)
			return err
		})
		if len(ports) != 300 {
			t.Errorf("statistics of %d ports, want 300", len(ports))
		}
		var list []openflow.TableStats
		s.parts(&openflow.MultipartRequest{Type: openflow.MultipartTable}, func(body []byte) (err error) {
			list, err = v.DecodeTableStats(body, list)
			return err
		})
		if want := map[openflow.Version]int{openflow.V10: 1, openflow.V13: tables}[v]; len(list) != want {
			t.Errorf("statistics of %d tables, want %d", len(list), want)
		}
	})
}

func TestGroups(t *testing.T) {
	v := openflow.V13
	s, _ := only(t, v, isolated(t, 1, 4, 4), Config{Groups: 1})
	group := func(c flow.Command, id uint32) {
		m := flow.GroupMod{Command: c, Group: flow.Group{Kind: flow.GroupKindAll, ID: id}}
		if c != flow.Delete {
			m.Group.Buckets = []flow.Bucket{{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.Output(2)}}}
		}
		s.send(v.AppendGroupMod(nil, 1, &m))
	}
	group(flow.Modify, 1)
	s.expectError(openflow.ErrGroupModFailed, openflow.GroupModFailedUnknownGroup)
	group(flow.Add, 1)
	group(flow.Add, 1)
	s.expectError(openflow.ErrGroupModFailed, openflow.GroupModFailedGroupExists)
	group(flow.Add, 2)
	s.expectError(openflow.ErrGroupModFailed, openflow.GroupModFailedOutOfGroups)
	var got []flow.Group
	s.parts(&openflow.MultipartRequest{Type: openflow.MultipartGroupDesc}, func(body []byte) (err error) {
		got, err = v.DecodeGroupDesc(body, got)
		return err
	})
	if len(got) != 1 || got[0].ID != 1 || len(got[0].Buckets) != 1 {
		t.Errorf("groups %+v", got)
	}
}

func TestUnsupportedIsRefused(t *testing.T) {
	v := openflow.V13
	s, _ := only(t, v, isolated(t, 1, 4, 2), Config{})
	s.send(v.AppendMeterMod(nil, 1, &flow.MeterMod{Command: flow.Add, Meter: flow.Meter{ID: 1, Flags: 1}}))
	s.expectError(openflow.ErrBadRequest, openflow.BadRequestBadType)
	s.send(v.AppendExperimenter(nil, 2, &openflow.Experimenter{ID: 0x2320}))
	s.expectError(openflow.ErrBadRequest, openflow.BadRequestBadExperimenter)
	m := adding(1, 1, flow.Match{}, flow.Output(1))
	m.Entry.Table = tables
	s.mod(m)
	s.expectError(openflow.ErrFlowModFailed, openflow.FlowModFailedBadTableID)
	s.send([]byte{4, 14, 0, 8, 0, 0, 0, 1}, nil) // a flow-mod cut short
	s.expectError(openflow.ErrBadRequest, openflow.BadRequestBadLen)
	s.send([]byte{1, 2, 0, 8, 0, 0, 0, 1}, nil) // of another version
	s.expectError(openflow.ErrBadRequest, openflow.BadRequestBadVersion)
	s.fence()
}

func TestOtherVersionIsRefused(t *testing.T) {
	c := newController(t)
	n := start(t, Config{Topology: isolated(t, 1, 4, 2), Version: openflow.V13, Address: c.address()})
	s := c.accept(openflow.V10)
	s.send(openflow.V10.AppendHello(nil, 1, openflow.V10), nil)
	s.expect(openflow.TypeHello)
	s.v = openflow.V13
	s.expectError(openflow.ErrHelloFailed, openflow.HelloFailedIncompatible)
	if _, err := s.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is still there: %v", err)
	}
	testwait.Until(t, "WaitUp says what is wrong with the version", func() bool {
		err := n.WaitUp(within(t, 30*time.Millisecond), 0)
		return errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "speaks OpenFlow 1.3 only")
	})
}

func TestSwitchComesBack(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		c := newController(t)
		n := start(t, Config{Topology: isolated(t, 1, 4, 2), Version: v, Address: c.address()})
		s := c.open(v)
		s.mod(adding(5, 5, flow.Match{}, flow.Output(1)))
		s.fence()
		s.conn.Close()
		s = c.open(v)
		if f := s.flows(openflow.MultipartRequest{}); len(f) != 1 {
			t.Errorf("%d entries after the connection was lost, want 1: a switch keeps them", len(f))
		}
		if st, err := n.Stats(within(t, testwait.Limit)); err != nil || st.Connects != 2 || st.Lost != 1 || st.Up != 1 {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

func TestUnixSocketRefusedIsRetried(t *testing.T) {
	n := start(t, Config{Topology: isolated(t, 1, 4, 2), Version: openflow.V13, Network: "unix", Address: t.TempDir() + "/none"})
	testwait.Until(t, "WaitUp says why no switch is up", func() bool {
		err := n.WaitUp(within(t, 50*time.Millisecond), 0)
		return err != nil && strings.Contains(err.Error(), "0 of 1 switches up") && strings.Contains(err.Error(), "no such file")
	})
}
