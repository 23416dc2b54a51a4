package scp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/sbi"
)

// list lists the instances of a type, as the n-th network function.
func (g *rig) list(n int, query string) (ids []string) {
	g.t.Helper()
	resp, body := g.do(n, "GET", instances+query, "")
	var list struct {
		Links struct {
			Self struct{ Href string }
			Item []struct{ Href string }
		} `json:"_links"`
		Total int             `json:"totalItemCount"`
		More  json.RawMessage `json:"x"`
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || resp.StatusCode != 200 || list.Total != len(list.Links.Item) || list.Links.Self.Href != "x" || string(list.More) != "1.50" {
		g.t.Errorf("%d lists %s: %s %s", n, query, resp.Status, body)
	}
	for _, item := range list.Links.Item {
		id, ok := strings.CutPrefix(item.Href, "http://nrf"+instances+"/")
		if !ok {
			g.t.Errorf("%d lists %s: %s", n, query, item.Href)
		}
		ids = append(ids, id)
	}
	return ids
}

// retrieve asks for an instance, as the n-th network function.
func (g *rig) retrieve(n int, id string) (status int, p sbi.NFProfile) {
	g.t.Helper()
	resp, body := g.do(n, "GET", instances+"/"+id, "")
	if err := json.Unmarshal([]byte(body), &p); resp.StatusCode == 200 && err != nil {
		g.t.Errorf("%d retrieves %s: %v", n, id, err)
	}
	return resp.StatusCode, p
}

// A function that starts after the producers, and lists and retrieves instances instead
// of discovering them, uses the end point.
func TestListed(t *testing.T) {
	g := newRig(t)
	only := func(types ...sbi.NFType) func(*sbi.NFProfile) {
		return func(p *sbi.NFProfile) { p.AllowedNFTypes = types }
	}
	g.register(5, sbi.UDM, only(sbi.AUSF))
	g.register(6, sbi.UDM, only(sbi.AUSF))
	g.register(1, sbi.AUSF)
	g.register(2, sbi.AMF)
	udms := []string{id(5), id(6)}
	ends := g.list(1, "?nf-type=UDM&limit=100")
	if len(ends) != 1 || slices.Contains(udms, ends[0]) {
		t.Fatalf("the AUSF lists %v", ends)
	}
	status, end := g.retrieve(1, ends[0])
	if status != 200 || end.NFInstanceID != ends[0] || end.NFType != sbi.UDM || len(end.NFServices) != 1 || !strings.HasPrefix(end.IPv4Addresses[0], "127.0.9.") {
		t.Errorf("the AUSF retrieves %d %+v", status, end)
	}
	if resp, _ := g.do(1, "GET", instances+"/"+ends[0], "", "If-None-Match", `*`); resp.StatusCode != 304 {
		t.Errorf("unchanged: %s", resp.Status)
	}
	if _, found, _ := g.discover(1, sbi.AUSF, sbi.UDM, ""); len(found.NFInstances) != 1 || found.NFInstances[0].NFInstanceID != ends[0] {
		t.Errorf("the AUSF discovers %+v", found.NFInstances)
	}
	if got := g.list(1, ""); len(got) != 3 || !slices.Contains(got, ends[0]) || !slices.Contains(got, id(1)) {
		t.Errorf("the AUSF lists all: %v", got)
	}
	for who, n := range map[string]int{"an AMF, which may not use them": 2, "one that is not registered": 3} {
		if got := g.list(n, "?nf-type=UDM"); !slices.Equal(got, udms) {
			t.Errorf("%s lists %v", who, got)
		}
		if status, _ := g.retrieve(n, ends[0]); status != 404 {
			t.Errorf("%s retrieves the end point: %d", who, status)
		}
	}
	for _, n := range []int{1, 5} {
		if status, one := g.retrieve(n, id(5)); status != 200 || one.NFInstanceID != id(5) || one.IPv4Addresses[0] != at(5) {
			t.Errorf("%d retrieves an instance: %d %+v", n, status, one)
		}
	}
	if got := g.list(5, "?nf-type=UDM"); !slices.Equal(got, udms) {
		t.Errorf("a UDM lists %v", got)
	}
}

// Who has an end point from a list is notified of its end.
func TestListedEnds(t *testing.T) {
	g := newRig(t)
	amf := g.function(1, sbi.AMF)
	g.register(5, sbi.UDM)
	uri := g.subscribe(1, "http://"+amf.at.String()+"/c", "")
	ends := g.list(1, "?nf-type=UDM")
	g.do(5, "DELETE", instances+"/"+id(5), "")
	g.notifyAs("127.0.0.1", uri, fmt.Sprintf(`{"event":"NF_DEREGISTERED","nfInstanceUri":"http://nrf/%s"}`, id(5)))
	amf.mu.Lock()
	defer amf.mu.Unlock()
	if len(ends) != 1 || !slices.ContainsFunc(amf.bodies, func(text string) bool { return strings.Contains(text, ends[0]) }) {
		t.Errorf("listed %v, told %v", ends, amf.bodies)
	}
}

// What an end point cannot stand for is listed as it is, and all is to those who manage
// instances.
func TestListedAsTheyAre(t *testing.T) {
	g := newRig(t)
	g.register(1, sbi.AMF)
	g.register(2, sbi.NRF)
	for n := 5; n < 7; n++ {
		g.register(n, sbi.SMF, func(p *sbi.NFProfile) { p.SNSSAIs = []sbi.Snssai{{SST: uint8(n)}} })
	}
	g.register(7, sbi.UDM)
	g.register(8, sbi.UDM)
	smfs, udms := []string{id(5), id(6)}, []string{id(7), id(8)}
	if got := g.list(1, "?nf-type=SMF"); !slices.Equal(got, smfs) {
		t.Errorf("of other slices: %v", got)
	}
	if got := g.list(2, "?nf-type=UDM"); !slices.Equal(got, udms) {
		t.Errorf("an NRF lists %v", got)
	}
	if got := g.list(1, "?nf-type=UDM"); len(got) != 1 {
		t.Errorf("an AMF lists %v", got)
	}
	for what, body := range map[string]string{
		"nonsense": `{"_links": 7}`, "no JSON": "\x00", "no items": `{"_links":{"item":[7,"x"]}}`, "no ids": `{"_links":{"item":[{"href":""},{"href":8},{}]}}`, "nobody": `{}`,
	} {
		l := &listing{notifier: g.front.notifier, found: map[group]string{}}
		if got := l.translate(t.Context(), []byte(body)); got != nil {
			t.Errorf("%s: %s", what, got)
		}
	}
	l := &listing{notifier: g.front.notifier, requesters: []requester{{}}, found: map[group]string{}}
	if got := l.translate(t.Context(), []byte(`{"_link":{"item":{"href":"`+id(7)+`"}}}`)); got == nil || strings.Contains(string(got), id(7)) {
		t.Errorf("the only one: %s", got)
	}
	cfg := *g.cfg
	cfg.Notifications = false
	g.proxy.configure(&cfg)
	if got := g.list(1, "?nf-type=UDM"); !slices.Equal(got, udms) {
		t.Errorf("switched off: %v", got)
	}
}
