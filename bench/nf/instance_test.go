package nf

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bench/sim/httpload"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/sbi"
)

// run runs an instance until the test ends, or the function that it returns is
// called.
func run(t *testing.T, nrf *Endpoint, of sbi.NFType, edits ...func(*Config)) (*Instance, func()) {
	t.Helper()
	cfg := Config{
		Type: of, NRF: nrf.Root(), Listen: "127.0.0.1:0", Capacity: 100, Log: discard(),
		Producing: Producing{Payload: 300, Load: -1, Contexts: 1000},
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	i, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- i.Run(ctx) }()
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	awaitStatus(t, nrf, i, http.StatusOK)
	return i, stop
}

// awaitStatus waits until the NRF answers for an instance with a status.
func awaitStatus(t *testing.T, nrf *Endpoint, i *Instance, status int) string {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		resp, text := ask(t, nrf, "GET", managementPath+"/nf-instances/"+i.ID, "", "")
		if resp.StatusCode == status {
			return text
		}
	}
	t.Fatalf("%s %s: the NRF does not answer with %d", i.cfg.Type, i.ID, status)
	return ""
}

// core runs one instance of each type and returns the AMF.
func core(t *testing.T, nrf *Endpoint, edits ...func(*Config)) *Instance {
	for _, of := range []sbi.NFType{sbi.AUSF, sbi.UDM, sbi.PCF, sbi.SMF} {
		run(t, nrf, of, edits...)
	}
	amf, _ := run(t, nrf, sbi.AMF, edits...)
	return amf
}

func attach(t *testing.T, amf *Instance, n int) Report {
	t.Helper()
	r, err := amf.Attach(context.Background(), Attachments{Count: n, Arrivals: httpload.Arrivals{Rate: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Attachments.Begun != n || r.Attachments.Done+r.Attachments.Failed != n {
		t.Errorf("attachments: %+v", r.Attachments)
	}
	return r
}

func full(c *Config) { c.Full = true }

// TestPaper counts the messages of the paper's section IV.B.
func TestPaper(t *testing.T) {
	t.Parallel()
	nrf := startNRF(t, DefaultRepository())
	amf := core(t, nrf)
	r := attach(t, amf, 20)
	// Two requests to the AUSF and two to the SMF for each attachment, one to the
	// SMF for each detachment; one discovery for each of the two.
	if r.Attachments.Done != 20 || r.Detachments.Done != 20 || r.Requests != 20*5 || r.Discoveries != 2 || len(r.Failures) != 0 {
		t.Errorf("%+v", r)
	}
	for of, want := range map[sbi.NFType]int{sbi.AUSF: 40, sbi.SMF: 60, sbi.UDM: 0} {
		sum := 0
		for _, n := range r.Instances[of] {
			sum += n
		}
		if sum != want {
			t.Errorf("%s answered %d times, want %d", of, sum, want)
		}
	}
	if p := r.Attachments; p.P50MS <= 0 || p.P50MS > p.P99MS || p.P99MS > p.MaxMS {
		t.Errorf("times %+v", p)
	}
}

// TestFull has UDM and PCF asked, too, and the AMF called back.
func TestFull(t *testing.T) {
	t.Parallel()
	nrf := startNRF(t, DefaultRepository())
	amf := core(t, nrf, full)
	r := attach(t, amf, 5)
	// AUSF 2, UDM 1, PCF 1, SMF 2; then SMF 1, PCF 1, UDM 1.
	if r.Attachments.Done != 5 || r.Detachments.Done != 5 || r.Requests != 5*9 || r.Callbacks != 5 || r.Discoveries != 4 || len(r.Failures) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestBound checks that resources stay with the instance that has made them, and
// that instances are chosen by priority and capacity.
func TestBound(t *testing.T) {
	t.Parallel()
	nrf := startNRF(t, DefaultRepository())
	run(t, nrf, sbi.AUSF)
	first, _ := run(t, nrf, sbi.SMF, func(c *Config) { c.Capacity = 300 })
	second, _ := run(t, nrf, sbi.SMF)
	run(t, nrf, sbi.SMF, func(c *Config) { c.Priority = 1 }) // is never asked
	amf, _ := run(t, nrf, sbi.AMF)
	r := attach(t, amf, 400)
	got := r.Instances[sbi.SMF]
	if r.Attachments.Done != 400 || len(got) != 2 || got[first.ID]+got[second.ID] != 1200 || got[first.ID] < 750 || got[first.ID] > 1050 {
		t.Errorf("%+v; want three quarters of 1200 at %s", r, first.ID)
	}
	checks, _ := run(t, nrf, sbi.AMF, func(c *Config) { c.Consuming.CheckInstance = true })
	if r := attach(t, checks, 20); r.Detachments.Done != 20 || len(r.Failures) != 0 {
		t.Errorf("%+v", r)
	}
	resp, text := ask(t, second.Endpoint, "POST", "/nsmf-pdusession/v1/sm-contexts/99999/modify", plain, "{}")
	if resp.StatusCode != 404 || !strings.Contains(text, "CONTEXT_NOT_FOUND") || resp.Header.Get(InstanceHeader) != second.ID || resp.Header.Get("Server") != "weft-simulated-SMF" {
		t.Errorf("%v %v %s", resp.Status, resp.Header, text)
	}
}

// TestCheckInstance has an instance answer under the address of another.
func TestCheckInstance(t *testing.T) {
	t.Parallel()
	nrf := startNRF(t, DefaultRepository())
	run(t, nrf, sbi.AUSF)
	smf, _ := run(t, nrf, sbi.SMF)
	amf, _ := run(t, nrf, sbi.AMF, func(c *Config) { c.Consuming.CheckInstance = true })
	resp, _ := ask(t, nrf, "DELETE", managementPath+"/nf-instances/"+smf.ID, "", "")
	p := smf.profile()
	p.NFInstanceID = idOf(7)
	b, _ := json.Marshal(p)
	if put, _ := ask(t, nrf, "PUT", managementPath+"/nf-instances/"+idOf(7), plain, string(b)); resp.StatusCode != 204 || put.StatusCode != 201 {
		t.Fatal(resp.Status, put.Status)
	}
	if r := attach(t, amf, 3); r.Attachments.Failed != 3 || r.Failures["SMF: other-instance"] != 3 {
		t.Errorf("%+v", r)
	}
}

// TestValidity lets the time of a discovery pass.
func TestValidity(t *testing.T) {
	t.Parallel()
	nrf := startNRF(t, DefaultRepository())
	smf, stop := run(t, nrf, sbi.SMF)
	now := start
	c := func(how Consuming) *consumer {
		c := newConsumer(smf.Endpoint.Client, nrf.Root(), sbi.Requester{NFType: sbi.AMF}, how)
		c.now = func() time.Time { return now }
		return c
	}
	once, again := c(Consuming{Forever: true}), c(Consuming{})
	for i, want := range []int{1, 1, 2} { // 10 s of validity
		now = start.Add(time.Duration(i) * 6 * time.Second)
		for _, x := range []*consumer{once, again} {
			if all, err := x.discover(context.Background(), session); err != nil || len(all) != 1 {
				t.Errorf("after %d: %v, %v", i, all, err)
			}
		}
		if got := again.count.read().Discoveries; got != want {
			t.Errorf("%d discoveries, want %d", got, want)
		}
	}
	stop() // deregisters
	now = start.Add(time.Hour)
	if all, err := again.discover(context.Background(), session); err != nil || len(all) != 0 {
		t.Errorf("%v, %v: it has been deregistered", all, err)
	}
	if all, err := once.discover(context.Background(), session); err != nil || len(all) != 1 || once.count.read().Discoveries != 1 {
		t.Errorf("%v, %v: it never asks again", all, err)
	}
	if _, err := again.ask(context.Background(), session, "POST", "/sm-contexts", nil); kindOf(err) != "no-instance" {
		t.Errorf("%v", err)
	}
}

// TestRegistersAgain has the NRF forget an instance.
func TestRegistersAgain(t *testing.T) {
	cfg := DefaultRepository()
	cfg.Heartbeat = time.Second
	nrf := startNRF(t, cfg)
	smf, stop := run(t, nrf, sbi.SMF, func(c *Config) { c.Producing.Load = 42; c.Instance = idOf(3) })
	if resp, _ := ask(t, nrf, "DELETE", managementPath+"/nf-instances/"+idOf(3), "", ""); resp.StatusCode != 204 {
		t.Fatal(resp.Status)
	}
	if text := awaitStatus(t, nrf, smf, http.StatusOK); !strings.Contains(text, `"load":42`) || !strings.Contains(text, `"nfInstanceId":"`+idOf(3)) {
		t.Errorf("%s", text)
	}
	stop()
	awaitStatus(t, nrf, smf, http.StatusNotFound)
}

func TestOverload(t *testing.T) {
	now := start
	p := newProducer(Producing{Workers: 2, Overload: 1, Load: -1, ServiceTime: 0}, "")
	p.now = func() time.Time { return now }
	p.since = now
	<-p.free
	<-p.free
	p.queued.Add(2) // two are served
	served := make(chan error)
	go func() { served <- p.serve(context.Background()) }()
	for p.queued.Load() != 3 {
		time.Sleep(time.Millisecond)
	}
	err := p.serve(context.Background())
	if problem := sbi.ProblemOf(err); problem.Status != 503 || problem.Cause != sbi.NFCongestion || problem.RetryAfter != time.Second {
		t.Errorf("one too many: %v", err)
	}
	p.free <- struct{}{}
	if err := <-served; err != nil {
		t.Error(err)
	}
	p.served.Store(int64(3 * time.Second))
	if now = now.Add(4 * time.Second); p.load() != 37 { // 3 s of 2 × 4 s
		t.Error("load is not what the workers had to do")
	}
	if now = now.Add(time.Second); p.load() != 0 {
		t.Error("load is not of the time since it was asked for")
	}
	if p := newProducer(Producing{Payload: 300, Load: 7}, ""); len(p.answer) != 300 || p.load() != 7 {
		t.Errorf("%d octets, load %d", len(p.answer), p.load())
	}
}

// The first attachments wait until the core has registered, as right after a lab is up.
func TestFirstAttachmentsWait(t *testing.T) {
	t.Parallel()
	nrf := startNRF(t, DefaultRepository())
	amf, _ := run(t, nrf, sbi.AMF)
	amf.procedure.wait = testwait.Limit
	answer := make(chan string)
	go func() {
		defer close(answer)
		_, text := ask(t, amf.Endpoint, "POST", simulationPath+"/attachments", plain, `{"count": 3, "rate": 500}`)
		answer <- text
	}()
	for _, of := range []sbi.NFType{sbi.AUSF, sbi.UDM, sbi.PCF, sbi.SMF} {
		run(t, nrf, of)
	}
	var r Report
	if text := <-answer; json.Unmarshal([]byte(text), &r) != nil || r.Attachments.Done != 3 {
		t.Error(text)
	}
}

// TestAttachments asks an AMF over HTTP.
func TestAttachments(t *testing.T) {
	t.Parallel()
	nrf := startNRF(t, DefaultRepository())
	amf := core(t, nrf)
	resp, text := ask(t, amf.Endpoint, "POST", simulationPath+"/attachments", plain, `{"count": 10, "rate": 500, "arrivals": "poisson", "stay": "10ms"}`)
	var r Report
	if err := json.Unmarshal([]byte(text), &r); err != nil || resp.StatusCode != 200 || !r.Simulated || r.Attachments.Done != 10 || r.Detachments.Done != 10 {
		t.Errorf("%v %s", resp.Status, text)
	}
	if resp, text := ask(t, amf.Endpoint, "GET", simulationPath+"/report", "", ""); resp.StatusCode != 200 || !strings.Contains(text, `"attachments":{"begun":10`) {
		t.Errorf("%v %s", resp.Status, text)
	}
	for body, want := range map[string]string{
		`{"rate": 0}`: "/rate", `{"count": -1}`: "/count", `{"stay": "long"}`: "/stay", `{"arrivals": "x"}`: "/arrivals", `{"rate": "x"}`: "INVALID_MSG_FORMAT",
	} {
		if resp, text := ask(t, amf.Endpoint, "POST", simulationPath+"/attachments", plain, body); resp.StatusCode != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %v %s", body, resp.Status, text)
		}
	}
	if _, err := Open(Config{Type: sbi.SMF, NRF: nrf.Root(), Listen: "127.0.0.1:0", PLMNs: []sbi.PlmnID{{MCC: "1"}}, Producing: Producing{Contexts: 1}}); err == nil || !strings.Contains(err.Error(), "/plmnList/0/mcc") {
		t.Errorf("a network without a code: %v", err)
	}
	for _, edit := range []func(*Config){
		func(c *Config) { c.Type = "UPF" }, func(c *Config) { c.NRF = "10.0.0.1:7777" }, func(c *Config) { c.Instance = "x" },
		func(c *Config) { c.Producing.Overload = 1 }, func(c *Config) { c.Producing.Load = 101 }, func(c *Config) { c.Capacity = -1 },
	} {
		cfg := amf.cfg
		if edit(&cfg); cfg.Validate() == nil {
			t.Errorf("%+v is allowed", cfg)
		}
	}
}
