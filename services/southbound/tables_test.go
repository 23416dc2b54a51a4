package southbound

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/wefttest"
)

// begin plays a switch's handshake up to the last request, which it returns; it
// answers only the multipart requests of some types.
func (c *wire) begin(sw flow.DPID, answers ...openflow.MultipartType) (last []byte) {
	c.t.Helper()
	c.send(c.v.AppendHello(nil, 1), nil)
	c.want(openflow.TypeHello)
	c.answer(sw, c.want(openflow.TypeFeaturesRequest))
	c.answer(sw, c.want(openflow.TypeRoleRequest))
	c.want(openflow.TypeSetConfig)
	c.want(openflow.TypeSetAsync)
	for {
		msg := c.want(openflow.TypeMultipartRequest)
		var r openflow.MultipartRequest
		if err := c.v.DecodeMultipartRequest(msg, &r); err != nil {
			c.t.Fatal(err)
		}
		if slices.Contains(answers, r.Type) {
			c.answer(sw, msg)
		}
		if r.Type == openflow.MultipartPortDesc {
			return msg
		}
	}
}

// TestTablesWithGaps: which tables a switch has is what it says of them, not the
// number of its features reply (254 here).
func TestTablesWithGaps(t *testing.T) {
	all := []openflow.MultipartType{openflow.MultipartTable, openflow.MultipartDesc, openflow.MultipartPortDesc}
	inAllModes(t, "", func(t *testing.T, w *world) {
		for sw, test := range map[flow.DPID]struct {
			has    []uint8
			mute   bool
			tables uint32
			ids    []uint32
		}{
			1: {has: []uint8{0, 100, 200}, tables: 1, ids: []uint32{0, 100, 200}},
			2: {has: []uint8{0, 1, 2, 3}, tables: 4},
			3: {has: []uint8{2, 1, 0, 9}, tables: 3, ids: []uint32{0, 1, 2, 9}},
			4: {tables: 254},
			5: {mute: true, tables: 254},
		} {
			c := w.wire()
			c.tables = test.has
			answers := all
			if test.mute {
				answers = all[1:]
			}
			c.begin(sw, answers...)
			if s := w.up(sw).Switch; s.Tables != test.tables || !slices.Equal(s.TableIds, test.ids) {
				t.Errorf("tables %v: told %d, %v", test.has, s.Tables, s.TableIds)
			}
		}
	})
}

// failed waits until a switch is listed as one whose handshakes fail.
func (w *world) failed(times uint64) (f *api.FailedSwitch) {
	w.t.Helper()
	w.eventually("a handshake has failed", func() bool {
		m, err := wefttest.Call(w.h, api.ListSwitches, &api.ListSwitchesRequest{})
		if err != nil || len(m.Failed) != 1 {
			return false
		}
		f = m.Failed[0]
		return f.Times == times
	})
	return f
}

// TestFailedHandshakesAreNamed: a switch that does not come through its handshake is
// listed with what was missing and the remedy, until it has.
func TestFailedHandshakesAreNamed(t *testing.T) {
	inAllModes(t, "handshake_timeout: 300ms", func(t *testing.T, w *world) {
		for n := range uint64(2) {
			c := w.wire()
			c.begin(7, openflow.MultipartDesc)
			if f := w.failed(n + 1); !strings.Contains(f.Reason, "no port description") || !strings.Contains(f.Reason, "300ms") || f.Remedy == "" || f.Dpid != flow.DPID(7).String() {
				t.Error(f)
			}
		}
		w.wire().conn.Close() // a probe of the port has not tried to be a switch
		c := w.wire()
		c.tables = []uint8{10, 20, 50, 60}
		c.begin(7, openflow.MultipartTable, openflow.MultipartDesc, openflow.MultipartPortDesc)
		if f := w.failed(3); !strings.Contains(f.Reason, "tables 10, 20, 50, 60 and no table 0") || !strings.Contains(f.Remedy, "table 0") {
			t.Error(f)
		}
		c.closed()
		c = w.wire()
		c.begin(7, openflow.MultipartDesc, openflow.MultipartPortDesc)
		w.up(7)
		w.eventually("it is forgotten that the switch has failed", func() bool {
			m, err := wefttest.Call(w.h, api.ListSwitches, &api.ListSwitchesRequest{})
			return err == nil && len(m.Failed) == 0
		})
	})
}

// TestFailuresAreLoggedRarely: a switch that tries for ever is in the log ever more
// rarely, and forgotten when it does not try any more.
func TestFailuresAreLoggedRarely(t *testing.T) {
	var f failures
	now := time.Unix(0, 0)
	said := 0
	for range 1000 {
		now = now.Add(10 * time.Second)
		if f.add(unixAddr{}, 1, nil, now) {
			said++
		}
	}
	if said != 10 {
		t.Errorf("logged %d times", said)
	}
	if n := len(f.list(now)); n != 1 {
		t.Errorf("%d are known", n)
	}
	if n := len(f.list(now.Add(failuresLast + time.Second))); n != 0 {
		t.Errorf("%d are known after a while", n)
	}
}

type unixAddr struct{}

func (unixAddr) Network() string { return "unix" }
func (unixAddr) String() string  { return "@" }
