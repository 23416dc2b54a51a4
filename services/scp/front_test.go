package scp

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// All producers of a type are one end point, whose id and address stay: after the
// first, the NRF is not asked within the validity, and a restart changes nothing.
func TestOneEndPoint(t *testing.T) {
	g := newRig(t)
	for n := 5; n <= 7; n++ {
		g.register(n, sbi.UDM, func(p *sbi.NFProfile) { capacity := 100 * n; p.Capacity = &capacity })
	}
	g.register(1, sbi.AMF)
	status, first, resp := g.discover(1, sbi.AMF, sbi.UDM, "")
	if status != 200 || len(first.NFInstances) != 1 {
		t.Fatalf("status %d, %d instances", status, len(first.NFInstances))
	}
	one := first.NFInstances[0]
	if !slices.Equal(one.IPv4Addresses, []string{"127.0.9.1"}) || len(one.NFServices) != 1 || *one.NFServices[0].IPEndPoints[0].Port != 7777 ||
		one.NFServices[0].IPEndPoints[0].IPv4Address != "127.0.9.1" || *one.Capacity != 1800 || !sbi.ValidInstanceID(one.NFInstanceID) {
		t.Errorf("found %+v", one)
	}
	if cc := resp.Header.Get("Cache-Control"); cc != "max-age=30" || first.ValidityPeriod != 30 {
		t.Errorf("Cache-Control %q, validityPeriod %d", cc, first.ValidityPeriod)
	}
	v := g.vip("scp-udm.7777", func(v *api.Vip) bool { return len(v.Pool) == 3 })
	if v.Address != "127.0.9.1" || v.Port != 7777 || v.Per != "pair" || v.Again != "bound" || v.Allow != nil || v.Refuse != "to: "+g.cfg.Listen || v.Pool[2].Weight != 700 {
		t.Errorf("vip %v", v)
	}
	shadow := g.vip(nrfVip, func(v *api.Vip) bool { return v.Shadow })
	if "http://"+shadow.Address+":"+itoa(shadow.Port) != g.cfg.NRF || shadow.Pool[0].Address+":"+itoa(shadow.Pool[0].Port) != g.cfg.Listen {
		t.Errorf("shadow %v", shadow)
	}
	if _, _, err := g.proxy.policies.Change(t.Context(), "UDM", func(*api.ScpPolicy) (*api.ScpPolicy, error) {
		return readPolicy(&api.ScpPolicy{Type: "UDM", Again: "balance"})
	}); err != nil {
		t.Fatal(err)
	}
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return v.Again == "indicated" })
	etag := resp.Header.Get("ETag")
	g.now.Add(int64(10 * time.Second))
	if _, again, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); again.ValidityPeriod != 20 || again.NFInstances[0].NFInstanceID != one.NFInstanceID {
		t.Errorf("ten seconds later: validity %d, %s", again.ValidityPeriod, again.NFInstances[0].NFInstanceID)
	}
	if status, _, _ := g.discover(1, sbi.AMF, sbi.UDM, "", "If-None-Match", etag); status != 304 {
		t.Errorf("not modified: status %d", status)
	}
	if g.nrf.searches != 1 {
		t.Errorf("the NRF was asked %d times", g.nrf.searches)
	}
	g.now.Add(int64(25 * time.Second))
	g.patch(5, `[{"op":"replace","path":"/load","value":50}]`)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	if g.nrf.searches != 2 {
		t.Errorf("after the validity: the NRF was asked %d times", g.nrf.searches)
	}
	g.stop()
	g.start()
	g.failNRF("silent")
	if status, after, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); status != 200 || after.NFInstances[0].NFInstanceID != one.NFInstanceID || after.NFInstances[0].IPv4Addresses[0] != "127.0.9.1" {
		t.Errorf("after a restart: status %d, %v", status, after.NFInstances)
	}
}

func itoa(n uint32) string { return strconv.Itoa(int(n)) }

// Who names an instance gets that instance; who names the id of the end point gets
// that.
func TestByInstance(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM)
	g.register(6, sbi.UDM)
	_, all, _ := g.discover(1, sbi.AMF, sbi.UDM, "")
	for _, want := range []string{id(6), all.NFInstances[0].NFInstanceID} {
		if _, one, _ := g.discover(1, sbi.AMF, sbi.UDM, "&target-nf-instance-id="+want); len(one.NFInstances) != 1 || one.NFInstances[0].NFInstanceID != want {
			t.Errorf("%s: found %v", want, one.NFInstances)
		}
	}
	if _, none, _ := g.discover(1, sbi.AMF, sbi.PCF, ""); none.NFInstances == nil || len(none.NFInstances) != 0 {
		t.Errorf("of PCF: %v", none.NFInstances)
	}
}

// A restricted producer is found by those whom it allows, and only these may
// connect.
func TestAuthorised(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(2, sbi.SMF)
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	g.register(6, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	status, found, _ := g.discover(1, sbi.AMF, sbi.UDM, "")
	if status != 200 || len(found.NFInstances) != 1 {
		t.Fatalf("AMF: status %d, %v", status, found.NFInstances)
	}
	for what, f := range map[string]func() int{
		"SMF":            func() int { s, _, _ := g.discover(2, sbi.SMF, sbi.UDM, ""); return s },
		"SMF as AMF":     func() int { s, _, _ := g.discover(2, sbi.AMF, sbi.UDM, ""); return s },
		"SMF, by its id": func() int { s, _, _ := g.discover(2, sbi.SMF, sbi.UDM, "&target-nf-instance-id="+id(5)); return s },
	} {
		if s := f(); s != 403 {
			t.Errorf("%s: status %d", what, s)
		}
	}
	name := ""
	g.eventually("the VIP", func() bool {
		g.back.mu.Lock()
		defer g.back.mu.Unlock()
		for n, v := range g.back.vips {
			if strings.HasPrefix(n, "scp-udm-") && len(v.Pool) == 2 && g.lets(v, at(1)) {
				name = n
			}
		}
		return name != ""
	})
	// What the switches do not let through comes to the front, which says why.
	if resp, body := g.do(2, "GET", "/nudm-main/v1/x", ""); resp.StatusCode != 403 || !strings.Contains(body, "may not use nudm-main") {
		t.Errorf("refused: %s: %s", resp.Status, body)
	}
	if resp, _ := g.do(2, "GET", "/nothing/v1/x", ""); resp.StatusCode != 404 {
		t.Errorf("nobody's service: %s", resp.Status)
	}
	// The NRF is no registered consumer, and may connect.
	if refused := g.proxy.refusal("nudm-main", netip.MustParseAddr("127.0.0.1"), false); refused.Status == 403 {
		t.Errorf("the NRF is refused: %s", refused.Detail)
	}
	// An AMF more, and one less.
	g.register(3, sbi.AMF)
	g.vip(name, func(v *api.Vip) bool { return g.lets(v, at(1), at(3)) })
	g.do(1, "DELETE", "/nnrf-nfm/v1/nf-instances/"+id(1), "")
	g.vip(name, func(v *api.Vip) bool { return g.lets(v, at(3)) })
}

// With strict, who is not registered may neither ask nor connect.
func TestStrict(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Strict = true })
	g.register(1, sbi.AMF)
	g.register(5, sbi.UDM)
	if status, _, _ := g.discover(9, sbi.AMF, sbi.UDM, ""); status != 403 {
		t.Errorf("not registered: status %d", status)
	}
	if status, _, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); status != 200 {
		t.Errorf("registered: status %d", status)
	}
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return g.lets(v, at(1), at(5)) })
}

// A profile with addresses of another host, or with the id of another's instance,
// is refused and does not reach the NRF.
func TestPoisoning(t *testing.T) {
	g := newRig(t)
	g.host(1, 1)
	g.host(5, 5)
	g.register(5, sbi.UDM)
	foreign := func(p *sbi.NFProfile) { p.NFServices[0].IPEndPoints[0].IPv4Address = at(5) }
	for what, f := range map[string]func() *http.Response{
		"an address of another": func() *http.Response {
			r, _ := g.do(1, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(1), profile(1, sbi.UDM, foreign))
			return r
		},
		"an instance of another": func() *http.Response {
			r, _ := g.do(1, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(5), strings.ReplaceAll(profile(1, sbi.UDM), id(1), id(5)))
			return r
		},
		"a heartbeat for another": func() *http.Response {
			r, _ := g.do(1, "PATCH", "/nnrf-nfm/v1/nf-instances/"+id(5), `[{"op":"replace","path":"/nfStatus","value":"SUSPENDED"}]`)
			return r
		},
		"deregistering another": func() *http.Response {
			r, _ := g.do(1, "DELETE", "/nnrf-nfm/v1/nf-instances/"+id(5), "")
			return r
		},
	} {
		if r := f(); r.StatusCode != 403 {
			t.Errorf("%s: %s", what, r.Status)
		}
	}
	if len(g.nrf.got) != 1 {
		t.Errorf("the NRF got %v", g.nrf.got)
	}
	// Two addresses of one host are its own.
	g.host(1, 1, 11)
	g.register(1, sbi.AMF, func(p *sbi.NFProfile) { p.NFServices[0].IPEndPoints[0].IPv4Address = at(11) })
}

// An NRF that is silent, or answers nonsense, is not missed for what is known; what
// it refuses is refused.
func TestNRFFails(t *testing.T) {
	for _, fail := range []string{"silent", "nonsense"} {
		t.Run(fail, func(t *testing.T) {
			g := newRig(t)
			g.register(1, sbi.AMF)
			g.register(5, sbi.UDM)
			g.failNRF(fail)
			if status, found, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); status != 200 || len(found.NFInstances) != 1 {
				t.Errorf("known: status %d, %v", status, found.NFInstances)
			}
			if status, _, _ := g.discover(1, sbi.AMF, sbi.PCF, ""); status != 504 && status != 502 {
				t.Errorf("not known: status %d", status)
			}
		})
	}
	g := newRig(t)
	g.register(5, sbi.UDM)
	g.nrf.set(func(n *fakeNRF) { n.fail = "refuse" })
	if status, _, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); status != 403 {
		t.Errorf("refused: status %d", status)
	}
}

// TestHeartbeatsWithoutNRF: a producer whose heartbeats come is found and serves however long
// the NRF is silent or fails; one whose heartbeats end is late.
func TestHeartbeatsWithoutNRF(t *testing.T) {
	for _, fail := range []string{"silent", "broken"} {
		t.Run(fail, func(t *testing.T) {
			g := newRig(t)
			g.register(2, sbi.SMF)
			g.register(5, sbi.UDM)
			g.register(6, sbi.UDM)
			g.failNRF(fail)
			for range 3 { // 24 seconds, longer than heartbeat and margin
				g.now.Add(int64(8 * time.Second))
				if resp := g.patch(5, `[{"op":"replace","path":"/nfStatus","value":"REGISTERED"}]`); resp.StatusCode != 504 && resp.StatusCode != 500 {
					t.Errorf("a heartbeat: %s", resp.Status)
				}
			}
			if status, found, _ := g.discover(2, sbi.SMF, sbi.UDM, ""); status != 200 || len(found.NFInstances) != 1 {
				t.Errorf("discovery: status %d, %v", status, found.NFInstances)
			}
			p := g.proxy.get(&api.GetScpRequest{Type: "udm"}, nil, g.now.Load()).Producers
			if len(p) != 2 || p[0].State != "up" || p[1].State != "late" {
				t.Errorf("producers %v", p)
			}
		})
	}
}

// An NRF that has forgotten everything does not take away those whose heartbeats
// pass here; one whose heartbeat does not come gets no new connections, and goes
// when the NRF does not know it.
func TestNRFRestarted(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(5, sbi.UDM)
	g.register(6, sbi.UDM)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	g.nrf.set(func(n *fakeNRF) { clear(n.book); n.validity = 1 })
	g.now.Add(int64(8 * time.Second))
	if resp := g.patch(5, `[{"op":"replace","path":"/nfStatus","value":"REGISTERED"}]`); resp.StatusCode != 404 {
		t.Fatalf("the NRF has forgotten it: %s", resp.Status)
	}
	g.register(5, sbi.UDM)
	if _, found, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); len(found.NFInstances) != 1 {
		t.Errorf("found %v", found.NFInstances)
	}
	g.now.Add(int64(9 * time.Second)) // instance 6 is late by then
	p := g.proxy.get(&api.GetScpRequest{Type: "udm"}, nil, g.now.Load()).Producers
	if len(p) != 2 || p[0].State != "up" || p[1].State != "late" {
		t.Errorf("producers %v", p)
	}
	g.now.Add(int64(30 * time.Second))
	g.patch(5, `[{"op":"replace","path":"/nfStatus","value":"REGISTERED"}]`)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	if p := g.proxy.get(&api.GetScpRequest{Type: "udm"}, nil, g.now.Load()).Producers; len(p) != 1 || p[0].Instance != id(5) {
		t.Errorf("later: producers %v", p)
	}
}

// Load and status of heartbeats count: weights, draining, overload, and its end.
func TestOverload(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM)
	g.register(6, sbi.UDM)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	load := func(n int, percent string) {
		g.patch(n, `[{"op":"add","path":"/load","value":`+percent+`},{"op":"add","path":"/nfServices/0/load","value":`+percent+`}]`)
	}
	load(5, "50")
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return v.Pool[0].Weight == 50 && v.Pool[1].Weight == 100 })
	load(5, "95")
	load(6, "90")
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return v.Pool[0].State == "draining" && v.Pool[1].State == "draining" })
	resp, body := g.do(1, "POST", "/nudm-main/v1/x", "")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "5" || !strings.Contains(body, string(sbi.NFServiceCongestion)) {
		t.Errorf("%s, Retry-After %q: %s", resp.Status, resp.Header.Get("Retry-After"), body)
	}
	load(6, "85") // not yet
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return v.Pool[1].State == "draining" })
	load(6, "40")
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return v.Pool[0].State == "" && v.Pool[1].State == "" })
	load(5, "10")
	g.patch(6, `[{"op":"replace","path":"/nfStatus","value":"UNDISCOVERABLE"}]`)
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return v.Pool[0].State == "" && v.Pool[1].State == "draining" })
	if _, err := g.proxy.drain(&api.DrainProducerRequest{Instance: id(5)}); err != nil {
		t.Fatal(err)
	}
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return v.Pool[0].State == "retiring" })
	if _, err := g.proxy.drain(&api.DrainProducerRequest{Instance: "x"}); err == nil {
		t.Error("drained nobody")
	}
}

// Services that are not together at all members have ports of their own; those
// that consumers know stay.
func TestDoors(t *testing.T) {
	g := newRig(t)
	two := func(a, b int) func(*sbi.NFProfile) {
		return func(p *sbi.NFProfile) {
			s := p.NFServices[0]
			s.ServiceInstanceID, s.ServiceName, s.IPEndPoints = "2", "nudm-other", []sbi.IPEndPoint{{IPv4Address: p.IPv4Addresses[0], Port: &b}}
			p.NFServices[0].IPEndPoints[0].Port = &a
			p.NFServices = append(p.NFServices, s)
		}
	}
	ports := func() map[string]int {
		_, found, _ := g.discover(1, sbi.AMF, sbi.UDM, "")
		all := map[string]int{}
		for _, s := range found.NFInstances[0].NFServices {
			all[s.ServiceName] = *s.IPEndPoints[0].Port
		}
		return all
	}
	g.register(5, sbi.UDM, two(7777, 7777))
	if p := ports(); p["nudm-main"] != 7777 || p["nudm-other"] != 7777 {
		t.Errorf("together: %v", p)
	}
	g.register(6, sbi.UDM, two(7000, 7001))
	p := ports()
	if p["nudm-main"] == p["nudm-other"] || p["nudm-main"] == 7777 || p["nudm-other"] == 7777 {
		t.Errorf("apart: %v", p)
	}
	old := g.vip("scp-udm.7777", func(*api.Vip) bool { return true })
	if len(old.Pool) != 1 || old.Pool[0].Address != at(5) {
		t.Errorf("for consumers that never ask again: %v", old.Pool)
	}
	other := g.vip("scp-udm."+strconv.Itoa(p["nudm-other"]), func(v *api.Vip) bool { return len(v.Pool) == 2 })
	if other.Pool[0].Port != 7777 || other.Pool[1].Port != 7001 {
		t.Errorf("other: %v", other.Pool)
	}
}

// A slice has an end point of its own, and a preferred locality comes first.
func TestSliceAndLocality(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.SMF, func(p *sbi.NFProfile) { p.SNSSAIs = []sbi.Snssai{{SST: 1}}; p.Locality = "east" })
	g.register(6, sbi.SMF, func(p *sbi.NFProfile) { p.SNSSAIs = []sbi.Snssai{{SST: 2}}; p.Locality = "west" })
	_, all, _ := g.discover(1, sbi.AMF, sbi.SMF, "")
	_, slice, _ := g.discover(1, sbi.AMF, sbi.SMF, `&snssais=[{"sst":2}]`)
	_, west, _ := g.discover(1, sbi.AMF, sbi.SMF, "&preferred-locality=west")
	ids := map[string]bool{}
	for _, r := range []sbi.SearchResult{all, slice, west} {
		if len(r.NFInstances) != 1 {
			t.Fatalf("found %v", r.NFInstances)
		}
		ids[r.NFInstances[0].NFInstanceID] = true
	}
	if len(ids) != 3 {
		t.Errorf("end points %v", ids)
	}
	for _, e := range g.proxy.get(&api.GetScpRequest{}, nil, g.now.Load()).Endpoints {
		v := g.vip(e.Vip, func(*api.Vip) bool { return true })
		switch {
		case e.Slice != "" && (len(v.Pool) != 1 || v.Pool[0].Address != at(6)):
			t.Errorf("slice: %v", v.Pool)
		case e.Locality != "" && (v.Pool[0].Priority <= v.Pool[1].Priority || v.Pool[1].Address != at(6)):
			t.Errorf("west: %v", v.Pool)
		}
	}
}

// What the proxy cannot choose by goes to the NRF; so does what is no discovery.
func TestPassed(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM)
	if _, found, _ := g.discover(1, sbi.AMF, sbi.UDM, "&supi=imsi-1"); len(found.NFInstances) != 1 || found.NFInstances[0].NFInstanceID != id(5) {
		t.Errorf("by SUPI: %v", found.NFInstances)
	}
	if resp, body := g.do(1, "POST", "/nnrf-nfm/v1/subscriptions", `{"nfStatusNotificationUri":"http://127.0.1.1/x"}`); resp.StatusCode != 200 || !strings.Contains(body, "passed") {
		t.Errorf("subscription: %s: %s", resp.Status, body)
	}
	form := "grant_type=client_credentials&nfInstanceId=" + id(1) + "&targetNfType=UDM&scope=nudm-sdm"
	if resp, body := g.do(1, "POST", "/oauth2/token", form, "Content-Type", "application/x-www-form-urlencoded"); resp.StatusCode != 200 || !strings.Contains(body, "passed") || string(g.nrf.last) != form {
		t.Errorf("token: %s: %s, the NRF got %q", resp.Status, body, g.nrf.last)
	}
	g.failNRF("silent")
	if resp, _ := g.do(1, "GET", "/nnrf-nfm/v1/nf-instances", ""); resp.StatusCode != 504 {
		t.Errorf("silent: %s", resp.Status)
	}
}

// Pairs are told with the types of both ends.
func TestPairs(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(5, sbi.UDM)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	resp, err := g.proxy.pairs(t.Context(), &api.ListScpPairsRequest{}, g.back)
	if err != nil || len(resp.Pairs) != 1 {
		t.Fatalf("%v, %v", resp, err)
	}
	if p := resp.Pairs[0]; p.Consumer != at(1) || p.ConsumerType != "AMF" || p.Producer != at(5)+":7777" || p.Type != "UDM" || p.Packets != 10 || !p.Authorised {
		t.Errorf("%v", p)
	}
	if _, err := g.proxy.pairs(t.Context(), &api.ListScpPairsRequest{Limit: 10_001}, g.back); err == nil {
		t.Error("limit 10001")
	}
}

// Instances that have registered before the front was there are known all the
// same, with who may use them, and are gone when the NRF does not know them.
func TestSurvey(t *testing.T) {
	g := newRig(t)
	g.nrf.set(func(n *fakeNRF) {
		n.book[id(5)] = []byte(profile(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} }))
	})
	g.proxy.survey(t.Context(), g.front.nrf)
	p := g.proxy.get(&api.GetScpRequest{}, nil, g.now.Load())
	if len(p.Producers) != 1 || p.Producers[0].State != "up" || !slices.Equal(p.Producers[0].Allowed, []string{"AMF"}) || p.Nrf != "ok" {
		t.Errorf("%v", p)
	}
	if status, _, _ := g.discover(2, sbi.SMF, sbi.UDM, ""); status != 403 {
		t.Errorf("SMF: status %d", status)
	}
	g.nrf.set(func(n *fakeNRF) { clear(n.book) })
	g.proxy.survey(t.Context(), g.front.nrf)
	if p := g.proxy.get(&api.GetScpRequest{}, nil, g.now.Load()); len(p.Producers) != 0 {
		t.Errorf("%v", p)
	}
	g.nrf.set(func(n *fakeNRF) { n.fail = "nonsense" })
	g.proxy.survey(t.Context(), g.front.nrf)
	if p := g.proxy.get(&api.GetScpRequest{}, nil, g.now.Load()); p.Nrf == "ok" {
		t.Errorf("nrf: %s", p.Nrf)
	}
}

// NRFs list their instances in several ways.
func TestLists(t *testing.T) {
	g := newRig(t)
	for text, want := range map[string]int{
		`{"_links": {"self": {"href": "x"}, "item": [{"href": "http://nrf/nnrf-nfm/v1/nf-instances/` + id(5) + `"}, {"href": "` + id(6) + `"}]}}`: 2,
		`{"_link": {"item": [{"href": "http://nrf/nf-instances/` + id(5) + `"}]}, "nfType": ""}`:                                                  1,
		`{"_links": {"item": {"href": "/nf-instances/` + id(5) + `"}}}`:                                                                           1,
		`{"_links": {"item": null}}`: 0,
		`{"_links": {}}`:             0,
		`{"_links": {"item": [{"href": "a/.."}, {"href": ""}]}}`: 0,
		`{}`: -1,
		`[]`: -1,
	} {
		g.handler.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
		ids, err := g.front.nrf.instances(t.Context())
		if (err != nil) != (want < 0) || err == nil && len(ids) != want {
			t.Errorf("%s: %v, %v", text, ids, err)
		}
	}
}
