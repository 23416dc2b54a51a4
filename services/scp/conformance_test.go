package scp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// conformanceCase is one of testdata/conformance: what network functions send, and
// what they must get, with NRFs of the manners that testdata/nrf.json describes. In
// its text, {at5} is the address of the fifth function, and {id5} its instance.
type conformanceCase struct {
	Name  string                  `json:"name"`
	NRFs  []string                `json:"nrfs"`  // none: all
	Names map[string][]netip.Addr `json:"names"` // scp.names
	Steps []conformanceStep       `json:"steps"`
}

type conformanceStep struct {
	From   int               `json:"from"` // which function does it
	As     int               `json:"as"`   // for which instance; 0: its own
	Put    json.RawMessage   `json:"put"`
	Octets bool              `json:"octets"` // put is a string, the body
	Header map[string]string `json:"header"`
	Patch  json.RawMessage   `json:"patch"`
	Delete int               `json:"delete"`
	Find   string            `json:"find"` // the query of a discovery
	Want   int               `json:"want"` // status; 0: 2xx
	Found  []foundInstance   `json:"found"`
	Text   string            `json:"text"` // that an answer of another status contains

	Host       []int           `json:"host"`   // these functions are at the port of the first
	Later      int             `json:"later"`  // seconds
	Survey     bool            `json:"survey"` // the NRF is asked for its instances
	NRFForgets int             `json:"nrf_forgets"`
	Vip        string          `json:"vip"`
	Members    []wantedMember  `json:"members"`
	Drain      int             `json:"drain"`
	Forget     int             `json:"forget"`
	Restart    bool            `json:"restart"`     // the process with scp
	NRFAnswers *nrfAnswer      `json:"nrf_answers"` // to discoveries, from now on
	Known      []knownFunction `json:"known"`       // all that weft scp get shows
}

// foundInstance is what a consumer must get of an instance.
type foundInstance struct {
	Of    string                     `json:"of"`  // an instance id; empty: an end point
	Has   map[string]json.RawMessage `json:"has"` // by JSON pointer
	Lacks []string                   `json:"lacks"`
	Text  string                     `json:"text"` // that its octets contain
}

// wantedMember is what a VIP must have.
type wantedMember struct {
	At     string `json:"at"`
	State  string `json:"state"`
	Weight uint32 `json:"weight"` // 0: any
}

// knownFunction is what weft scp get must show of an instance.
type knownFunction struct {
	Instance string `json:"instance"`
	State    string `json:"state"`   // empty: up
	WhyNot   string `json:"why_not"` // begins so; empty: it is balanced
	Age      uint32 `json:"age"`
}

// nrfAnswer is an answer of an NRF that is always the same.
type nrfAnswer struct {
	Status   int    `json:"status"`
	Location string `json:"location"`
	Encoding string `json:"encoding"`
	Body     string `json:"body"`
}

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
	answer *nrfAnswer // guarded by mu
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
			text = compressed(a.Body)
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
	manners := map[string]manner{}
	read(t, "testdata/nrf.json", &manners)
	files, err := filepath.Glob("testdata/conformance/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		var cases []conformanceCase
		read(t, file, &cases)
		for _, c := range cases {
			for _, of := range slices.Sorted(maps.Keys(manners)) {
				if len(c.NRFs) > 0 && !slices.Contains(c.NRFs, of) {
					continue
				}
				t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+c.Name+"/"+of, func(t *testing.T) {
					t.Parallel()
					g := newRig(t, func(cfg *Config) { cfg.Names = c.Names })
					g.handler.Store(&mannered{fakeNRF: g.nrf, of: manners[of]})
					for i := range c.Steps {
						if g.step(&c.Steps[i]); t.Failed() {
							t.Fatalf("step %d", i+1)
						}
					}
				})
			}
		}
	}
}

var placeholder = regexp.MustCompile(`\{(at|id)([0-9]+)\}`)

// read reads a file of cases. What it does not know is an error.
func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = placeholder.ReplaceAllFunc(text, func(b []byte) []byte {
		m := placeholder.FindSubmatch(b)
		n, _ := strconv.Atoi(string(m[2]))
		if string(m[1]) == "at" {
			return []byte(at(n))
		}
		return []byte(id(n))
	})
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// step takes one step of a case.
func (g *rig) step(s *conformanceStep) {
	g.t.Helper()
	path := func(n int) string { return "/nnrf-nfm/v1/nf-instances/" + id(n) }
	switch {
	case s.Put != nil:
		g.put(s, path(cmp.Or(s.As, s.From)))
	case s.Patch != nil:
		g.wants(s, "PATCH", path(cmp.Or(s.As, s.From)), string(s.Patch))
	case s.Delete != 0:
		g.wants(s, "DELETE", path(s.Delete), "")
	case s.Find != "":
		g.finds(s)
	case s.Host != nil:
		g.host(s.Host[0], s.Host...)
	case s.Later != 0:
		g.now.Add(int64(s.Later) * int64(time.Second))
	case s.Survey:
		g.proxy.survey(g.t.Context(), g.front.nrf)
	case s.NRFForgets != 0:
		g.nrf.set(func(n *fakeNRF) { delete(n.book, id(s.NRFForgets)) })
	case s.Drain != 0:
		if _, err := g.proxy.drain(&api.DrainProducerRequest{Instance: id(s.Drain)}); err != nil {
			g.t.Error(err)
		}
	case s.Forget != 0:
		if _, err := g.proxy.forgetProducer(&api.ForgetProducerRequest{Instance: id(s.Forget)}); err != nil {
			g.t.Error(err)
		}
	case s.Restart:
		g.stop()
		g.start()
	case s.NRFAnswers != nil:
		g.nrf.set(func(*fakeNRF) { g.handler.Load().(*mannered).answer = s.NRFAnswers })
	case s.Known != nil:
		g.knows(s)
	case s.Vip != "":
		g.hasVIP(s)
	}
}

func (g *rig) put(s *conformanceStep, path string) {
	g.t.Helper()
	text := string(s.Put)
	if s.Octets {
		_ = json.Unmarshal(s.Put, &text)
	}
	if i := strings.Index(text, `"{supiRanges}"`); i >= 0 { // as many as a large CHF has
		var ranges []string
		for k := range 2600 {
			ranges = append(ranges, fmt.Sprintf(`{"start":"imsi-00101%010d","end":"imsi-00101%010d"}`, k*1000, k*1000+999))
		}
		text = text[:i] + strings.Join(ranges, ",") + text[i+len(`"{supiRanges}"`):]
	}
	if s.Header["Content-Encoding"] == "gzip" {
		text = string(compressed(text))
	}
	g.wants(s, "PUT", path, text)
}

func compressed(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	z.Close()
	return b.Bytes()
}

func (g *rig) wants(s *conformanceStep, method, path, body string) string {
	g.t.Helper()
	var header []string
	for name, value := range s.Header {
		header = append(header, name, value)
	}
	resp, text := g.do(s.From, method, path, body, header...)
	if resp.StatusCode != s.Want && (s.Want != 0 || resp.StatusCode/100 != 2) {
		g.t.Errorf("%s %s: %s: %.500s", method, path, resp.Status, text)
	}
	return text
}

// finds discovers, and compares what is found with what should be.
func (g *rig) finds(s *conformanceStep) {
	g.t.Helper()
	text := g.wants(s, "GET", discoveryPath+"?"+s.Find, "")
	var result struct {
		Features  string            `json:"nrfSupportedFeatures"`
		Instances []json.RawMessage `json:"nfInstances"`
	}
	if s.Want != 0 && !strings.Contains(text, s.Text) {
		g.t.Errorf("answered %s", text)
	}
	if err := json.Unmarshal([]byte(text), &result); s.Want != 0 || err != nil {
		return
	}
	if result.Features != "24" || len(result.Instances) != len(s.Found) {
		g.t.Errorf("found %d, want %d: %.2000s", len(result.Instances), len(s.Found), text)
		return
	}
	for i, want := range s.Found {
		want.compare(g, result.Instances[i])
	}
}

func (f *foundInstance) compare(g *rig, text json.RawMessage) {
	g.t.Helper()
	var is any
	if err := json.Unmarshal(text, &is); err != nil {
		g.t.Error(err)
		return
	}
	switch of := valueAt(is, "/nfInstanceId"); {
	case f.Of == "" && !g.proxy.hasEndpoint(fmt.Sprint(of)):
		g.t.Errorf("%v is no end point: %s", of, text)
	case f.Of != "" && f.Of != fmt.Sprint(of):
		g.t.Errorf("found %v, want %s", of, f.Of)
	}
	for pointer, want := range f.Has {
		var value any
		_ = json.Unmarshal(want, &value)
		if got := valueAt(is, pointer); !reflect.DeepEqual(got, value) {
			g.t.Errorf("%s: %v, want %v: %s", pointer, got, value, text)
		}
	}
	for _, pointer := range f.Lacks {
		if got := valueAt(is, pointer); got != nil {
			g.t.Errorf("%s: %v, want none", pointer, got)
		}
	}
	if !strings.Contains(string(text), f.Text) {
		g.t.Errorf("want %s in %s", f.Text, text)
	}
}

// valueAt returns the value at a JSON pointer, nil if there is none.
func valueAt(v any, pointer string) any {
	for token := range strings.SplitSeq(pointer[1:], "/") {
		switch of := v.(type) {
		case map[string]any:
			v = of[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(of) {
				return nil
			}
			v = of[i]
		default:
			return nil
		}
	}
	return v
}

// knows compares what weft scp get shows with what it should.
func (g *rig) knows(s *conformanceStep) {
	g.t.Helper()
	vips, _ := g.back.list(g.t.Context())
	list := g.proxy.get(&api.GetScpRequest{}, vips, g.now.Load()).Functions
	if !slices.EqualFunc(list, s.Known, func(f *api.ScpFunction, w knownFunction) bool {
		return f.Instance == w.Instance && f.State == cmp.Or(w.State, "up") && f.Balanced == (w.WhyNot == "") && strings.HasPrefix(f.WhyNot, w.WhyNot) && f.Age == w.Age
	}) {
		g.t.Errorf("knows %v, want %+v", list, s.Known)
	}
}

// hasVIP waits until a VIP has the members that it should.
func (g *rig) hasVIP(s *conformanceStep) {
	g.t.Helper()
	g.vip(s.Vip, func(v *api.Vip) bool {
		return slices.EqualFunc(v.Pool, s.Members, func(m *api.PoolMember, w wantedMember) bool {
			return fmt.Sprintf("%s:%d", m.Address, m.Port) == w.At && m.State == w.State && (w.Weight == 0 || w.Weight == m.Weight)
		})
	})
}
