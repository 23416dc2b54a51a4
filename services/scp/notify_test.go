package scp

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// notifyAs sends a notification of the NRF's, from an address.
func (g *rig) notifyAs(from, uri, body string) *http.Response {
	g.t.Helper()
	c := g.transport(from)
	defer c.CloseIdleConnections()
	r, err := http.NewRequest("POST", uri, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	resp, err := c.RoundTrip(r)
	if err != nil {
		g.t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// subscribe subscribes to the status of instances, as the n-th network function, and
// returns the URI that the NRF keeps.
func (g *rig) subscribe(n int, uri, more string) string {
	g.t.Helper()
	g.nrf.set(func(n *fakeNRF) { n.keeps = true })
	resp, body := g.do(n, "POST", "/nnrf-nfm/v1/subscriptions", fmt.Sprintf(`{"nfStatusNotificationUri": %q, "x-other": [1.50]%s}`, uri, more))
	var told, kept struct {
		URI   string          `json:"nfStatusNotificationUri"`
		Other json.RawMessage `json:"x-other"`
	}
	if err := json.Unmarshal([]byte(body), &told); err != nil || resp.StatusCode != 201 || told.URI != uri || string(told.Other) != "[1.50]" || resp.ContentLength != int64(len(body)) {
		g.t.Errorf("the subscriber is told: %s %s", resp.Status, body)
	}
	g.nrf.set(func(n *fakeNRF) {
		if err := json.Unmarshal(n.stored, &kept); err != nil || string(kept.Other) != "[1.50]" {
			g.t.Errorf("the NRF keeps %s", n.stored)
		}
	})
	return kept.URI
}

// notified returns the last notification that a subscriber has got.
func notified(x *function) (data sbi.NotificationData) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = json.Unmarshal(x.body, &data)
	return data
}

// Who has subscribed at the NRF learns of the end point instead of the instance, over
// restarts of the front, and of the end of an instance.
func TestNotifications(t *testing.T) {
	g := newRig(t)
	amf := g.function(1, sbi.AMF)
	g.register(5, sbi.UDM)
	own := "http://" + amf.at.String() + "/callback?x=1"
	uri := g.subscribe(1, own, "")
	if !strings.HasPrefix(uri, g.url+callbacks) {
		t.Fatalf("the NRF has %s", uri)
	}
	notify := func(event sbi.NFEvent, n int) int {
		t.Helper()
		text, _ := json.Marshal(sbi.NotificationData{Event: event, NFInstanceURI: "http://nrf/nnrf-nfm/v1/nf-instances/" + id(n)})
		return g.notifyAs("127.0.0.1", uri, string(text)).StatusCode
	}
	all := (&endpoint{Group: group{Type: sbi.UDM}}).instance()
	end := "http://nrf/nnrf-nfm/v1/nf-instances/" + all
	check := func(what string, event sbi.NFEvent) {
		t.Helper()
		if got := notified(amf); got.Event != event || got.NFInstanceURI != end || got.NFProfile == nil || got.NFProfile.NFInstanceID != all || !strings.HasPrefix(got.NFProfile.IPv4Addresses[0], "127.0.9.") {
			t.Errorf("%s: told %+v", what, got)
		}
	}
	if status := notify(sbi.NFRegistered, 5); status != 200 || amf.last().RequestURI != "/callback?x=1" {
		t.Errorf("status %d, %s", status, amf.last().RequestURI)
	}
	check("registered", sbi.NFRegistered)
	g.nrf.set(func(n *fakeNRF) { n.book[id(6)] = []byte(profile(6, sbi.UDM)) }) // its registration is on its way
	notify(sbi.NFRegistered, 6)
	check("not known yet", sbi.NFRegistered)
	g.stop()
	g.start()
	notify(sbi.NFProfileChanged, 6)
	check("after a restart", sbi.NFProfileChanged)
	notify(sbi.NFRegistered, 5)
	g.do(5, "DELETE", "/nnrf-nfm/v1/nf-instances/"+id(5), "")
	notify(sbi.NFDeregistered, 5)
	if got := notified(amf); got.Event != sbi.NFDeregistered || !strings.HasSuffix(got.NFInstanceURI, id(5)) {
		t.Errorf("one of two ends: told %+v", got)
	}
	amf.mu.Lock()
	before := len(amf.got)
	amf.mu.Unlock()
	notify(sbi.NFDeregistered, 6)
	if got := notified(amf); len(amf.got) != before+2 || !strings.HasSuffix(got.NFInstanceURI, id(6)) {
		t.Errorf("the last one ends: %d notifications, the last %+v", len(amf.got)-before, got)
	}
	if got := amf.bodies[len(amf.bodies)-2]; !strings.Contains(got, all) {
		t.Errorf("the end point ends: %s", got)
	}
	if resp, _ := g.do(1, "PATCH", "/nnrf-nfm/v1/subscriptions/1", fmt.Sprintf(`[{"op":"replace","path":"/nfStatusNotificationUri","value":%q}]`, own)); resp.StatusCode != 201 {
		t.Errorf("a patch: %s", resp.Status)
	}
}

// A subscriber gets its own URI back from an NRF that compresses its answers, and a long
// answer as it came.
func TestSubscriptionAnswers(t *testing.T) {
	g := newRig(t, func(cfg *Config) { cfg.NRFTimeout = time.Minute })
	amf := g.function(1, sbi.AMF)
	own := "http://" + amf.at.String() + "/callback"
	kept := fmt.Sprintf(`{"nfStatusNotificationUri": %q}`, g.subscribe(1, own, ""))
	answer := func(encoding string, text []byte) (*http.Response, string) {
		g.handler.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write(text)
		}))
		return g.do(1, "PATCH", "/nnrf-nfm/v1/subscriptions/1", `[{"op":"replace","path":"/validityTime","value":"2030-01-01T00:00:00Z"}]`)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, kept)
	z.Close()
	if resp, body := answer("gzip", zipped.Bytes()); resp.Header.Get("Content-Encoding") != "" || !strings.Contains(body, own) {
		t.Errorf("compressed: %q %s", resp.Header.Get("Content-Encoding"), body)
	}
	long := append([]byte(kept), bytes.Repeat([]byte{' '}, mostAnswer)...)
	if resp, body := answer("", long); resp.StatusCode != 200 || len(body) != len(long) {
		t.Errorf("a long answer: %s, %d octets of %d", resp.Status, len(body), len(long))
	}
}

// Instances among which consumers choose themselves are told of as they are.
func TestNotificationsOfOwn(t *testing.T) {
	g := newRig(t)
	amf := g.function(1, sbi.AMF)
	for n := 5; n < 7; n++ {
		g.register(n, sbi.SMF, func(p *sbi.NFProfile) { p.SNSSAIs = []sbi.Snssai{{SST: uint8(n)}} })
	}
	uri := g.subscribe(1, "http://"+amf.at.String()+"/c", "")
	for what, body := range map[string]string{
		"of another slice": fmt.Sprintf(`{"event":"NF_REGISTERED","nfInstanceUri":"http://nrf/%s"}`, id(5)),
		"unknown":          fmt.Sprintf(`{"event":"NF_REGISTERED","nfInstanceUri":"http://nrf/%s"}`, id(9)),
		"nonsense":         `{"event": 7, "more": [[[`,
		"compressed":       "\x1f\x8b\x00",
		"no URI":           `{"event":"NF_REGISTERED"}`,
	} {
		if status := g.notifyAs("127.0.0.1", uri, body).StatusCode; status != 200 || amf.bodies[len(amf.bodies)-1] != body {
			t.Errorf("%s: status %d, told %s", what, status, amf.bodies[len(amf.bodies)-1])
		}
	}
}

// The front notifies nobody who has not asked it to, nowhere else, and for the NRF alone.
func TestNotificationsAreNoRelay(t *testing.T) {
	g := newRig(t)
	amf := g.function(1, sbi.AMF)
	g.register(5, sbi.UDM)
	own := "http://" + amf.at.String() + "/c"
	uri := g.subscribe(1, own, "")
	for _, from := range []string{at(1), at(9)} {
		if status := g.notifyAs(from, uri, "{}").StatusCode; status != 403 {
			t.Errorf("from %s: status %d", from, status)
		}
	}
	for _, other := range []string{uri + "x", uri[:len(uri)-1], g.url + callbacks, g.url + callbacks + "AAAA", strings.Replace(uri, callbacks, callbacks+"A", 1)} {
		if status := g.notifyAs("127.0.0.1", other, "{}").StatusCode; status != 404 {
			t.Errorf("%s: status %d", other, status)
		}
	}
	for what, uri := range map[string]string{
		"of another host": "http://" + at(5) + ":80/", "of the NRF": g.cfg.NRF + "/", "of the front": g.url + "/", "by a name": "http://amf.example.org/", "by TLS": "https://" + at(1) + "/",
		"of an end point": "http://127.0.9.1/", "with a user": "http://x@" + at(1) + "/", "of no host": "http://0.0.0.0/", "that is long": own + strings.Repeat("x", 1024),
	} {
		if kept := g.subscribe(1, uri, ""); kept != uri {
			t.Errorf("%s: the NRF has %s", what, kept)
		}
	}
	if kept := g.subscribe(1, own, `, "subscrCond": {"nfInstanceId": "`+id(5)+`"}`); kept != own {
		t.Errorf("of one instance: the NRF has %s", kept)
	}
	cfg := *g.cfg
	cfg.Notifications = false
	g.proxy.configure(&cfg)
	if kept := g.subscribe(1, own, ""); kept != own {
		t.Errorf("switched off: the NRF has %s", kept)
	}
	if status := g.notifyAs("127.0.0.1", uri, "{}").StatusCode; status != 200 {
		t.Errorf("one of before: status %d", status)
	}
	if c, ok := g.front.notifier.open(strings.TrimPrefix(uri, g.url+callbacks)); !ok || c.URI != own || c.Type != sbi.AMF {
		t.Errorf("%+v", c)
	}
}

// An SCP, and a registrar, are notified of end points that they may use for others only.
func TestNotificationsOfSCPs(t *testing.T) {
	g := newRig(t, func(cfg *Config) { cfg.Registrars = []netip.Prefix{netip.MustParsePrefix(at(3) + "/32")} })
	scp, amf := g.function(2, sbi.SCP), g.function(1, sbi.AMF)
	g.register(5, sbi.AUSF, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	g.register(6, sbi.AUSF, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	g.register(7, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AUSF} })
	body := fmt.Sprintf(`{"event":"NF_REGISTERED","nfInstanceUri":"http://nrf/%s"}`, id(5))
	end := (&endpoint{Group: group{Type: sbi.AUSF, Class: g.class(id(5))}}).instance()
	for what, c := range map[string]struct {
		as      callback
		instead bool
	}{
		"an SCP":                      {callback{URI: "http://" + scp.at.String() + "/c", Type: sbi.SCP, Instance: id(2)}, true},
		"an SCP of no type":           {callback{URI: "http://" + scp.at.String() + "/c"}, true},
		"a registrar":                 {callback{URI: "http://" + at(3) + ":80/c"}, true},
		"an AMF, which may":           {callback{URI: "http://" + amf.at.String() + "/c", Type: sbi.AMF, Instance: id(1)}, true},
		"a UDM, which may not":        {callback{URI: "http://" + at(7) + ":80/c", Type: sbi.UDM, Instance: id(7)}, false},
		"who says to be an SCP":       {callback{URI: "http://" + at(7) + ":80/c", Type: sbi.SCP, Instance: id(2)}, false},
		"a UDM that is behind an SCP": {callback{URI: "http://" + scp.at.String() + "/c", Type: sbi.UDM, Instance: id(7)}, false},
	} {
		if all := g.front.notifier.translate(t.Context(), c.as, []byte(body)); len(all) != 1 || strings.Contains(string(all[0]), end) != c.instead {
			t.Errorf("%s: told %s", what, all)
		}
	}
	uri := g.subscribe(2, "http://"+scp.at.String()+"/c", `, "reqNfType": "SCP"`)
	if g.notifyAs("127.0.0.1", uri, body); notified(scp).NFProfile == nil || notified(scp).NFProfile.NFInstanceID != end {
		t.Errorf("the SCP is told %+v", notified(scp))
	}
	if got := g.list(2, "?nf-type=AUSF"); !slices.Equal(got, []string{end}) {
		t.Errorf("the SCP lists %v", got)
	}
	if status, one := g.retrieve(2, end); status != 200 || one.NFInstanceID != end {
		t.Errorf("the SCP retrieves %d %+v", status, one)
	}
	if got := g.list(3, "?nf-type=AUSF"); len(got) != 2 {
		t.Errorf("a registrar lists %v", got)
	}
	if status, one := g.retrieve(3, end); status != 200 || one.NFInstanceID != end {
		t.Errorf("a registrar retrieves %d %+v", status, one)
	}
}

// class returns the class of an instance: those of one class have the same consumers.
func (g *rig) class(id string) string {
	g.proxy.mu.Lock()
	defer g.proxy.mu.Unlock()
	return g.proxy.book[id].class
}
