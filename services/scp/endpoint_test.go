package scp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/sbi"
)

// TestRefusedVIP: consumers have producers' own addresses while the balancer makes
// no VIP of them, and weft scp get says why.
func TestRefusedVIP(t *testing.T) {
	g := newRig(t)
	refuse := func(vip string) {
		g.back.mu.Lock()
		defer g.back.mu.Unlock()
		g.back.refuses = vip
	}
	refuse("scp-udm.7777")
	g.register(2, sbi.UDM)
	g.register(3, sbi.UDM)
	said := func() string {
		list, _ := g.back.list(t.Context())
		for _, e := range g.proxy.get(&api.GetScpRequest{}, list, g.now.Load()).Endpoints {
			if e.Type == "UDM" {
				return e.Refused
			}
		}
		return "no end point"
	}
	began := time.Now()
	status, found, _ := g.discover(1, sbi.AMF, sbi.UDM, "")
	if status != 200 || len(found.NFInstances) != 2 || found.NFInstances[0].IPv4Addresses[0] != at(2) {
		t.Fatalf("status %d after %v, %v", status, time.Since(began), found.NFInstances)
	}
	if why := said(); !strings.Contains(why, "127.0.1.2 is the address of vip other") {
		t.Errorf("it says %q", why)
	}
	refuse("")
	g.vip("scp-udm.7777", func(*api.Vip) bool { return true })
	g.eventually("the end point is there", func() bool {
		_, found, _ := g.discover(1, sbi.AMF, sbi.UDM, "")
		return len(found.NFInstances) == 1 && said() == ""
	})
}

// TestHeartbeatLateByAMargin, in virtual time: a heartbeat may be late by
// scp.margin, not more, before its producer gets no new consumers.
func TestHeartbeatLateByAMargin(t *testing.T) {
	g := newRig(t)
	g.register(2, sbi.UDM)
	g.register(3, sbi.UDM)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	states := func() (all string) {
		v := g.vip("scp-udm.7777", func(*api.Vip) bool { return true })
		for _, m := range v.Pool {
			all += m.State + ";"
		}
		return all
	}
	wants := func(when, want string) {
		t.Helper()
		for range 2 { // the second turn begins after the clock was set
			g.made.mu.Lock()
			turn := g.made.turn
			g.made.mu.Unlock()
			object.Notify(g.proxy.out)
			<-turn
		}
		if is := states(); is != want {
			t.Errorf("%s: %q, want %q", when, is, want)
		}
	}
	heartbeat := `[{"op":"replace","path":"/nfStatus","value":"REGISTERED"}]`
	g.now.Add(int64(10 * time.Second))
	g.patch(3, heartbeat)
	g.now.Add(int64(g.cfg.Margin))
	wants("late by the margin", ";;")
	g.now.Add(1)
	wants("a moment later", "draining;;")
	g.patch(2, heartbeat)
	wants("it has come", ";;")
	g.now.Add(int64(10*time.Second + g.cfg.Margin + 1))
	g.patch(3, heartbeat)
	wants("the other one, too", "draining;;")
}

// TestEndPointsAreGivenBack: one that nobody has asked for, nor used, for long has
// its address given back, and the same id if it comes again.
func TestEndPointsAreGivenBack(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Endpoints = 4 })
	for n, of := range []sbi.NFType{sbi.UDM, sbi.SMF, sbi.AUSF, sbi.PCF, sbi.AMF} {
		g.register(n+2, of, func(p *sbi.NFProfile) { p.HeartBeatTimer = 0 })
	}
	ask := func(of sbi.NFType) (id string, at string) {
		t.Helper()
		_, found, _ := g.discover(1, sbi.AMF, of, "")
		if len(found.NFInstances) != 1 {
			t.Fatalf("%s: %v", of, found)
		}
		return found.NFInstances[0].NFInstanceID, found.NFInstances[0].IPv4Addresses[0]
	}
	names := func() string {
		g.proxy.mu.Lock()
		defer g.proxy.mu.Unlock()
		return fmt.Sprint(len(g.proxy.endpoints), g.proxy.endpoints["scp-udm"] != nil)
	}
	first, _ := ask(sbi.UDM)
	for _, of := range []sbi.NFType{sbi.SMF, sbi.AUSF, sbi.PCF} {
		ask(of)
	}
	g.now.Add(int64(endpointIdle))
	if id, own := ask(sbi.AMF); own != at(6) || names() != "4 true" {
		t.Errorf("there is no room, and all are in use: %s at %s, end points %s", id, own, names())
	}
	ask(sbi.SMF)
	g.proxy.lively([]*api.Vip{{Name: "scp-ausf.7777", Pairs: 1}, {Name: "scp-pcf.7777", Connections: 1}, {Name: "scp-udm.7777"}}, g.now.Load())
	g.now.Add(1)
	if status, _, _ := g.discover(2, sbi.UDM, sbi.AMF, "&limit=2"); status != 200 || names() != "4 false" {
		t.Errorf("another one is wanted: %d, end points %s", status, names())
	}
	g.now.Add(int64(endpointLife))
	g.proxy.lively(nil, g.now.Load())
	g.now.Add(1)
	if g.proxy.lively(nil, g.now.Load()); names() != "0 false" {
		t.Errorf("nobody has asked for a day: end points %s", names())
	}
	if again, _ := ask(sbi.UDM); again != first {
		t.Errorf("first %s, then %s", first, again)
	}
}

// The processes of producers without TLS are to answer checks, those of others take
// connections at least.
func TestChecks(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(5, sbi.UDM)
	g.register(6, sbi.SMF, func(p *sbi.NFProfile) { p.NFServices[0].Scheme = "https" })
	for name, kind := range map[string]string{"scp-udm.7777": "http2", "scp-smf.7777": "tcp", nrfVip: "tcp"} {
		of := sbi.UDM
		if kind == "tcp" {
			of = sbi.SMF
		}
		g.discover(1, sbi.AMF, of, "")
		if v := g.vip(name, func(*api.Vip) bool { return true }); v.Health.Kind != kind {
			t.Errorf("%s: %v", name, v.Health)
		}
	}
}

// TestHeartbeatsPastTheFront, in virtual time: functions whose connections to the NRF are
// from when the front was away have heartbeats go there, past the front, and are as alive as
// the NRF says, until they speak here.
func TestHeartbeatsPastTheFront(t *testing.T) {
	g := newRig(t)
	g.register(2, sbi.UDM)
	g.stop()
	g.start()
	state := func() string {
		g.proxy.mu.Lock()
		defer g.proxy.mu.Unlock()
		state, _ := g.proxy.book[id(2)].serves(g.now.Load(), g.cfg.Margin)
		return state
	}
	g.eventually("the NRF has listed it", func() bool {
		object.Notify(g.proxy.out)
		g.proxy.mu.Lock()
		defer g.proxy.mu.Unlock()
		return g.proxy.book[id(2)].listed != 0
	})
	late := 10*time.Second + g.cfg.Margin + 1
	if g.now.Add(int64(late)); state() != "" {
		t.Errorf("without a heartbeat since the front is back: %s", state())
	}
	if resp := g.patch(2, `[{"op":"replace","path":"/load","value":1}]`); resp.StatusCode != 204 || state() != "" {
		t.Errorf("a heartbeat: %s, %s", resp.Status, state())
	}
	if g.now.Add(int64(late)); state() != "late" {
		t.Errorf("it has spoken here, and is silent: %q", state())
	}

	x, err := newProducer([]byte(profile(2, sbi.UDM)), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	const begun = int64(time.Hour)
	for what, c := range map[string]struct {
		listed, after time.Duration
		late          bool
	}{
		"the NRF lists it":         {late, late, false},
		"the NRF does not list it": {0, 2*surveyInterval + g.cfg.Margin, true},
		"for too long":             {pastTime, pastTime, true},
	} {
		x.heard, x.passed, x.listed = begun, begun, begun+int64(c.listed)
		if state, _ := x.serves(begun+int64(c.after), g.cfg.Margin); (state == "late") != c.late {
			t.Errorf("%s: %q", what, state)
		}
	}
}
