package scp

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
	"github.com/weft-sdn/weft/services/scp/scptest"
)

// manner is how an NRF treats profiles.
type manner struct {
	Profile []string                   `json:"profile"` // the members that it keeps; none: all
	Service []string                   `json:"service"`
	Answers []string                   `json:"answers"` // those that it answers to a registration; none: all
	Adds    map[string]json.RawMessage `json:"adds"`    // what it sets
}

func (m *manner) keep(profile map[string]any) {
	only(profile, m.Profile)
	services, _ := profile["nfServices"].([]any)
	for _, s := range services {
		if of, ok := s.(map[string]any); ok {
			only(of, m.Service)
		}
	}
	byKey, _ := profile["nfServiceList"].(map[string]any)
	for _, s := range byKey {
		if of, ok := s.(map[string]any); ok {
			only(of, m.Service)
		}
	}
}

func only(of map[string]any, names []string) {
	if names != nil {
		maps.DeleteFunc(of, func(name string, _ any) bool { return !slices.Contains(names, name) })
	}
}

// mannered is an NRF of a manner. It looks into nothing but the type, the status and
// the id of what it is asked for.
type mannered struct {
	*fakeNRF
	of     manner
	answer *scptest.NRFAnswer // guarded by mu
}

func (n *mannered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, single := strings.CutPrefix(r.URL.Path, "/nnrf-nfm/v1/nf-instances/")
	switch {
	case r.URL.Path == discoveryPath:
		n.find(w, r)
	case single && r.Method == http.MethodPut:
		n.put(w, r, id)
	case single && r.Method == http.MethodPatch:
		n.patch(w, r, id)
	default:
		n.fakeNRF.ServeHTTP(w, r)
	}
}

func (n *mannered) find(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a := n.answer; a != nil {
		w.Header().Set("Location", a.Location)
		text := []byte(a.Body)
		if w.Header().Set("Content-Encoding", a.Encoding); a.Encoding == "gzip" {
			text = scptest.Gzip(a.Body)
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write(text)
		return
	}
	var all []string
	q := r.URL.Query()
	for _, id := range slices.Sorted(maps.Keys(n.book)) {
		var p struct {
			ID     string `json:"nfInstanceId"`
			Type   string `json:"nfType"`
			Status string `json:"nfStatus"`
		}
		_ = json.Unmarshal(n.book[id], &p)
		if p.Type == q.Get("target-nf-type") && p.Status != "SUSPENDED" && p.Status != "UNDISCOVERABLE" && (q.Get("target-nf-instance-id") == "" || q.Get("target-nf-instance-id") == p.ID) {
			all = append(all, string(n.book[id]))
		}
	}
	fmt.Fprintf(w, `{"validityPeriod":%d,"nrfSupportedFeatures":"24","nfInstances":[%s]}`, n.validity, strings.Join(all, ","))
}

func (n *mannered) put(w http.ResponseWriter, r *http.Request, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(body)
	}
	text, _ := io.ReadAll(body)
	if n.of.Profile != nil || n.of.Adds != nil {
		var p map[string]any
		if err := json.Unmarshal(text, &p); err != nil {
			sbi.WriteProblem(w, sbi.Problem(http.StatusBadRequest, sbi.InvalidMessageFormat, err.Error()))
			return
		}
		n.of.keep(p)
		for name, value := range n.of.Adds {
			p[name] = value
		}
		text, _ = json.Marshal(p)
	}
	n.book[id] = text
	if n.of.Answers != nil {
		var p map[string]any
		_ = json.Unmarshal(text, &p)
		only(p, n.of.Answers)
		p["nfProfileChangesInd"] = true
		text, _ = json.Marshal(p)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(text)
}

// patch sets what is to be replaced also where there is nothing, as some NRFs do.
func (n *mannered) patch(w http.ResponseWriter, r *http.Request, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, _ := io.ReadAll(r.Body)
	items, err := sbi.ParsePatch(text)
	for i := range items {
		if items[i].Op == "replace" {
			items[i].Op = "add"
		}
	}
	if n.book[id] == nil || err != nil {
		sbi.WriteProblem(w, sbi.Problem(http.StatusNotFound, sbi.ContextNotFound, ""))
		return
	}
	if n.book[id], err = sbi.Apply(n.book[id], items); err != nil {
		panic(err)
	}
	w.WriteHeader(http.StatusNoContent)
}

// TestConformance plays the cases of testdata/conformance with NRFs of every manner.
func TestConformance(t *testing.T) {
	text, err := os.ReadFile("testdata/nrf.json")
	if err != nil {
		t.Fatal(err)
	}
	manners := map[string]manner{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&manners); err != nil {
		t.Fatal(err)
	}
	for _, c := range scptest.Read(t, ".") {
		for of, m := range manners {
			if !c.For(of) {
				continue
			}
			t.Run(c.File+"/"+c.Name+"/"+of, func(t *testing.T) {
				t.Parallel()
				g := newRig(t, func(cfg *Config) { cfg.Names, cfg.Registrars = c.Names, c.Registrars })
				g.handler.Store(&mannered{fakeNRF: g.nrf, of: m})
				scptest.Play(t, c, playedRig{g})
			})
		}
	}
}

// playedRig is a rig on which cases are played.
type playedRig struct{ *rig }

func (g playedRig) Address() string                                      { return g.cfg.Listen }
func (g playedRig) NRF() string                                          { return g.cfg.NRF }
func (g playedRig) NRFFeatures() string                                  { return "24" }
func (g playedRig) Endpoint(instance string) bool                        { return g.proxy.hasEndpoint(instance) }
func (g playedRig) WaitVIP(name string, is func(*api.Vip) bool) *api.Vip { return g.vip(name, is) }
func (g playedRig) Place(port int, functions ...int)                     { g.host(port, functions...) }
func (g playedRig) Later(d time.Duration)                                { g.now.Add(int64(d)) }
func (g playedRig) Survey()                                              { g.proxy.survey(g.t.Context(), g.front.nrf) }
func (g playedRig) NRFForgets(instance string) {
	g.nrf.set(func(n *fakeNRF) { delete(n.book, instance) })
}

func (g playedRig) Functions() []*api.ScpFunction {
	vips, _ := g.back.list(g.t.Context())
	return g.proxy.get(&api.GetScpRequest{}, vips, g.now.Load()).Functions
}

func (g playedRig) Drain(instance string) error {
	_, err := g.proxy.drain(&api.DrainProducerRequest{Instance: instance})
	return err
}

func (g playedRig) Forget(instance string) error {
	_, err := g.proxy.forgetProducer(&api.ForgetProducerRequest{Instance: instance})
	return err
}

func (g playedRig) Restart() {
	g.stop()
	g.start()
}

func (g playedRig) NRFAnswers(a *scptest.NRFAnswer) {
	g.nrf.set(func(*fakeNRF) { g.handler.Load().(*mannered).answer = a })
}
