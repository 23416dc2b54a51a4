package scptest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/freeport"
)

// A Front is a front that serves, the NRF behind it, and the balancer and the network around
// both.
type Front interface {
	// Address is ADDRESS:PORT at which the front listens, NRF the API root of the NRF.
	Address() string
	NRF() string
	// NRFFeatures is nrfSupportedFeatures in what the NRF finds.
	NRFFeatures() string
	// Endpoint reports whether an instance id is that of an end point.
	Endpoint(instance string) bool
	// WaitVIP waits until the balancer has a VIP that is as it should be.
	WaitVIP(name string, is func(*api.Vip) bool) *api.Vip
	// Functions returns what weft scp get shows of functions.
	Functions() []*api.ScpFunction
	// Place puts the addresses of some functions at a port of a switch.
	Place(port int, functions ...int)
	Drain(instance string) error
	Forget(instance string) error
	// Restart stops the process with scp, and starts it on what it has stored.
	Restart()
	// NRFForgets removes an instance at the NRF.
	NRFForgets(instance string)
}

// A Simulation is a Front whose time and NRF are simulated.
type Simulation interface {
	Front
	// Later has time pass.
	Later(time.Duration)
	// Survey asks the NRF for all its instances.
	Survey()
	// NRFAnswers is what the NRF answers to discoveries from now on.
	NRFAnswers(*NRFAnswer)
}

// player plays one case.
type player struct {
	t         *testing.T
	front     Front
	functions map[int]*function
	ports     map[int]int
	vip       string
}

// Play plays a case on a front, which must be a Simulation if the case is Simulated. The
// test ends at the first step that fails.
func Play(t *testing.T, c *Case, front Front) {
	t.Helper()
	p := &player{t: t, front: front, functions: map[int]*function{}, ports: map[int]int{}}
	for i := range c.Steps {
		s, err := c.step(i, p.value)
		if err != nil {
			t.Fatal(err)
		}
		if p.play(s); t.Failed() {
			t.Fatalf("step %d", i+1)
		}
	}
}

// value returns the value of a placeholder.
func (p *player) value(name string) string {
	switch name {
	case "front":
		return p.front.Address()
	case "nrf":
		return p.front.NRF()
	case "vip":
		return p.vip
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "port"))
	if p.ports[n] == 0 {
		port, err := freeport.Port()
		if err != nil {
			p.t.Fatal(err)
		}
		p.ports[n] = port
	}
	return strconv.Itoa(p.ports[n])
}

// play takes one step.
func (p *player) play(s *Step) {
	p.t.Helper()
	path := func(n int) string { return "/nnrf-nfm/v1/nf-instances/" + ID(n) }
	switch {
	case s.Put != nil:
		p.put(s, path(cmp.Or(s.As, s.From)))
	case s.Patch != nil:
		p.wants(s, "PATCH", path(cmp.Or(s.As, s.From)), string(s.Patch), "application/json-patch+json")
	case s.Delete != 0:
		p.wants(s, "DELETE", path(s.Delete), "", "")
	case s.Find != "":
		p.finds(s)
	case s.Listen != 0:
		p.listen(s.Listen, &s.Answers)
	case s.Stop != 0:
		p.functions[s.Stop].stop()
	case s.Ask != "":
		p.ask(s)
	case s.Host != nil:
		p.front.Place(s.Host[0], s.Host...)
	case s.NRFForgets != 0:
		p.front.NRFForgets(ID(s.NRFForgets))
	case s.Drain != 0:
		if err := p.front.Drain(ID(s.Drain)); err != nil {
			p.t.Error(err)
		}
	case s.Forget != 0:
		if err := p.front.Forget(ID(s.Forget)); err != nil {
			p.t.Error(err)
		}
	case s.Restart:
		p.front.Restart()
	case s.Known != nil:
		p.knows(s)
	case s.Vip != "":
		p.hasVIP(s)
	default:
		p.simulate(s)
	}
}

// simulate takes a step for which a Simulation is needed.
func (p *player) simulate(s *Step) {
	p.t.Helper()
	front, ok := p.front.(Simulation)
	switch {
	case !ok:
		p.t.Error("the step needs a Simulation, or does nothing")
	case s.Later != 0:
		front.Later(time.Duration(s.Later) * time.Second)
	case s.Survey:
		front.Survey()
	case s.NRFAnswers != nil:
		front.NRFAnswers(s.NRFAnswers)
	default:
		p.t.Error("the step does nothing")
	}
}

func (p *player) put(s *Step, path string) {
	p.t.Helper()
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
		text = string(Gzip(text))
	}
	p.wants(s, "PUT", path, text, "application/json")
}

// Gzip returns a text as gzip has it.
func Gzip(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	z.Close()
	return b.Bytes()
}

// wants sends a request, and compares the status of the answer.
func (p *player) wants(s *Step, method, path, body, kind string) (*http.Response, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.front.Address()+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for name, value := range s.Header {
		r.Header.Set(name, value)
	}
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(At(s.From))}}).DialContext, Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if resp.StatusCode != s.Want && (s.Want != 0 || resp.StatusCode/100 != 2) {
		p.t.Errorf("%s %s: %s: %.500s", method, path, resp.Status, text)
	}
	return resp, string(text)
}

// finds discovers, and compares what is found with what should be.
func (p *player) finds(s *Step) {
	p.t.Helper()
	_, text := p.wants(s, "GET", "/nnrf-disc/v1/nf-instances?"+s.Find, "", "")
	var result struct {
		Features  string            `json:"nrfSupportedFeatures"`
		Instances []json.RawMessage `json:"nfInstances"`
	}
	if s.Want != 0 && !strings.Contains(text, s.Text) {
		p.t.Errorf("answered %s", text)
	}
	if err := json.Unmarshal([]byte(text), &result); s.Want != 0 || err != nil {
		return
	}
	if want := p.front.NRFFeatures(); result.Features != want || len(result.Instances) != len(s.Found) {
		p.t.Errorf("found %d with features %q, want %d with %q: %.2000s", len(result.Instances), result.Features, len(s.Found), want, text)
		return
	}
	for i := range s.Found {
		p.compare(&s.Found[i], result.Instances[i])
	}
}

func (p *player) compare(f *Found, text json.RawMessage) {
	p.t.Helper()
	var is any
	if err := json.Unmarshal(text, &is); err != nil {
		p.t.Error(err)
		return
	}
	switch of := valueAt(is, "/nfInstanceId"); {
	case f.Of == "" && !p.front.Endpoint(fmt.Sprint(of)):
		p.t.Errorf("%v is no end point: %s", of, text)
	case f.Of != "" && f.Of != fmt.Sprint(of):
		p.t.Errorf("found %v, want %s", of, f.Of)
	}
	for pointer, want := range f.Has {
		var value any
		_ = json.Unmarshal(want, &value)
		if got := valueAt(is, pointer); !reflect.DeepEqual(got, value) {
			p.t.Errorf("%s: %v, want %v: %s", pointer, got, value, text)
		}
	}
	for _, pointer := range f.Lacks {
		if got := valueAt(is, pointer); got != nil {
			p.t.Errorf("%s: %v, want none", pointer, got)
		}
	}
	if !strings.Contains(string(text), f.Text) {
		p.t.Errorf("want %s in %s", f.Text, text)
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
func (p *player) knows(s *Step) {
	p.t.Helper()
	list := p.front.Functions()
	if !slices.EqualFunc(list, s.Known, func(f *api.ScpFunction, w Known) bool {
		return f.Instance == w.Instance && f.State == cmp.Or(w.State, "up") && f.Balanced == (w.WhyNot == "") && strings.HasPrefix(f.WhyNot, w.WhyNot) && f.Age == w.Age
	}) {
		p.t.Errorf("knows %v, want %+v", list, s.Known)
	}
}

// hasVIP waits until a VIP has the members that it should.
func (p *player) hasVIP(s *Step) {
	p.t.Helper()
	v := p.front.WaitVIP(s.Vip, func(v *api.Vip) bool {
		return slices.EqualFunc(v.Pool, s.Members, func(m *api.PoolMember, w Member) bool {
			return fmt.Sprintf("%s:%d", m.Address, m.Port) == w.At && m.State == w.State && (w.Weight == 0 || w.Weight == m.Weight)
		})
	})
	p.vip = fmt.Sprintf("%s:%d", v.Address, v.Port)
}
