package httpload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
)

// server serves HTTP/1.1 and HTTP/2 with prior knowledge until the test ends.
func server(t *testing.T, h http.HandlerFunc) (*httptest.Server, *url.URL) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s, parse(t, s.URL)
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text + "/a?b=c")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func conf(targets ...*url.URL) Config {
	return Config{
		Targets: targets, Method: "GET", Connections: 4, Streams: 1, Warmup: 50 * time.Millisecond, Duration: 200 * time.Millisecond,
		Timeout: testwait.Limit, InstanceHeader: "X-Instance",
	}
}

// load1 returns what a load measures. A busy machine may run little of it in the measured
// time, which is doubled, as package testing does for benchmarks, until that is enough.
func load1(t *testing.T, c Config, enough func(*Result) bool) *Result {
	t.Helper()
	r, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !enough(r) {
		if c.Duration *= 2; c.Duration > testwait.Limit {
			t.Fatalf("too little was measured: %+v", r)
		}
		return load1(t, c, enough)
	}
	failed := 0
	for _, n := range r.Failures {
		failed += n
	}
	if r.Due != r.Done+failed {
		t.Errorf("%d due, %d done, %d failed", r.Due, r.Done, failed)
	}
	return r
}

func isDue(r *Result) bool  { return r.Due > 0 }
func isDone(r *Result) bool { return r.Done > 0 }

func TestLoops(t *testing.T) {
	var wrong atomic.Int64
	answer := func(name string, major int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			if r.ProtoMajor != major || r.RequestURI != "/a?b=c" || r.Header.Get("X-Test") != "yes" || (r.Method == "POST") != (string(b) == strings.Repeat("x", 9000)) {
				wrong.Add(1)
			}
			w.Header().Set("X-Instance", name)
			io.WriteString(w, "0123456789")
		}
	}
	for _, c := range []struct {
		name string
		edit func(*Config)
	}{
		{"closed", func(*Config) {}},
		{"closed, streams", func(c *Config) { c.Streams = 20 }},
		{"closed, HTTP/1.1", func(c *Config) { c.HTTP1 = true }},
		{"bodies", func(c *Config) { c.Method, c.Body, c.Streams = "POST", []byte(strings.Repeat("x", 9000)), 20 }},
		{"bodies, HTTP/1.1", func(c *Config) { c.Method, c.Body, c.HTTP1 = "POST", []byte(strings.Repeat("x", 9000)), true }},
		{"open", func(c *Config) { c.Arrivals = &Arrivals{Rate: 500} }},
		{"open, random", func(c *Config) { c.Arrivals = &Arrivals{Rate: 500, Poisson: true, Seed: 3} }},
		{"open, HTTP/1.1", func(c *Config) { c.Arrivals, c.HTTP1 = &Arrivals{Rate: 500}, true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := conf()
			c.edit(&cfg)
			major := 2
			if cfg.HTTP1 {
				major = 1
			}
			_, a := server(t, answer("a", major))
			_, b := server(t, answer("b", major))
			cfg.Targets, cfg.Header = []*url.URL{a, b}, http.Header{"X-Test": {"yes"}}
			r := load1(t, cfg, func(r *Result) bool { return cfg.Arrivals != nil || len(r.Instances) == 2 })
			if wrong.Load() != 0 || len(r.Failures) != 0 || r.Done == 0 || r.Statuses[200] != r.Done || r.Octets != 10*int64(r.Done) ||
				r.Instances["a"]+r.Instances["b"] != r.Done || r.Instances["a"] == 0 || r.Instances["b"] == 0 || r.Latency.P50 <= 0 || r.Latency.P50 > r.Latency.Max {
				t.Errorf("%d wrong; %+v", wrong.Load(), r)
			}
			if cfg.Arrivals != nil && !cfg.Arrivals.Poisson && r.Due != 100 {
				t.Errorf("%d due, want 500 a second for 200 ms", r.Due)
			}
		})
	}
}

// TestCoordinatedOmission has a server stop for half of the time: those who had
// to wait until it went on count with all their wait.
func TestCoordinatedOmission(t *testing.T) {
	const stop = 500 * time.Millisecond
	var n atomic.Int64
	_, u := server(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 2 {
			time.Sleep(stop)
		}
	})
	c := conf(u)
	c.Connections, c.Warmup, c.Duration, c.Arrivals = 1, 0, time.Second, &Arrivals{Rate: 100}
	r := load1(t, c, isDue)
	// Of 100 requests, 50 were due while the server stood still, the first of them
	// for half a second: a quarter waited for longer than 250 ms.
	if r.Done != 100 || r.Latency.P90 < 300e3 || r.Service.P90 > r.Latency.P90/2 {
		t.Errorf("%+v", r)
	}
}

func TestFailures(t *testing.T) {
	for _, http1 := range []bool{false, true} {
		hang := make(chan struct{})
		_, busy := server(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
		_, hangs := server(t, func(w http.ResponseWriter, r *http.Request) { <-hang })
		_, aborts := server(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
		load := func(u *url.URL, edit func(*Config)) *Result {
			c := conf(u)
			if c.HTTP1 = http1; u == hangs {
				c.Timeout = 300 * time.Millisecond
			}
			if edit != nil {
				edit(&c)
			}
			return load1(t, c, isDue)
		}
		if r := load(busy, nil); r.Done != 0 || r.Failures["status"] == 0 || r.Statuses[503] != r.Failures["status"] || r.RequestsPS != 0 {
			t.Errorf("HTTP/1.1 %v, 503: %+v", http1, r)
		}
		if r := load(hangs, nil); r.Done != 0 || r.Failures["timeout"] != r.Due {
			t.Errorf("HTTP/1.1 %v, no answer: %+v", http1, r)
		}
		if r := load(hangs, func(c *Config) { c.Warmup = c.Timeout }); r.Done != 0 || r.Failures["timeout"] == 0 {
			t.Errorf("HTTP/1.1 %v, no answer for long: nothing is sent in place of what was given up: %+v", http1, r)
		}
		if r := load(hangs, func(c *Config) { c.Arrivals, c.Connections, c.Warmup = &Arrivals{Rate: 1000}, 1, 0 }); r.Done != 0 || r.Due != 200 || r.Failures["unsent"] == 0 || r.Failures["timeout"] == 0 {
			t.Errorf("HTTP/1.1 %v, no answer, open: %+v", http1, r)
		}
		close(hang)
		if r := load(aborts, nil); r.Done != 0 || r.Failures["closed"]+r.Failures["reset"]+r.Failures["stream reset"] == 0 {
			t.Errorf("HTTP/1.1 %v, aborted: %+v", http1, r)
		}
	}
	nobody, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), conf(parse(t, "http://"+nobody))); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestReplaced has each connection carry ten requests, and the server end some
// before.
func TestReplaced(t *testing.T) {
	for _, http1 := range []bool{false, true} {
		var opened atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
		s.Config.Protocols = &http.Protocols{}
		s.Config.Protocols.SetHTTP1(true)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		s.Start()
		c := conf(parse(t, s.URL))
		c.HTTP1, c.PerConnection, c.Warmup = http1, 10, 0
		r := load1(t, c, func(r *Result) bool {
			if r.Done < 100 {
				opened.Store(0)
			}
			return r.Done >= 100
		})
		if n := opened.Load(); len(r.Failures) != 0 || n < int64(r.Done)/10 || n > int64(r.Done)/10+8 || r.Connections.Opened < 5 || r.Connections.P50 <= 0 {
			t.Errorf("HTTP/1.1 %v: %d connections for %d requests: %+v", http1, n, r.Done, r)
		}
		s.Close()
	}
}

// TestGoesAway has the server say after each fifth request that it goes.
func TestGoesAway(t *testing.T) {
	var n atomic.Int64
	_, u := server(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%5 == 0 {
			w.Header().Set("Connection", "close")
		}
	})
	for _, http1 := range []bool{false, true} {
		c := conf(u)
		c.HTTP1 = http1
		if r := load1(t, c, func(r *Result) bool { return r.Done >= 50 }); len(r.Failures) != 0 || r.Connections.Opened < 2 {
			t.Errorf("HTTP/1.1 %v: %+v", http1, r)
		}
	}
}

func TestTLS(t *testing.T) {
	for _, http1 := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.TLS == nil || (r.ProtoMajor == 1) != http1 {
				w.WriteHeader(400)
			}
		}))
		s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0)
		s.StartTLS()
		pool := x509.NewCertPool()
		pool.AddCert(s.Certificate())
		c := conf(parse(t, s.URL))
		c.HTTP1, c.TLS = http1, &tls.Config{RootCAs: pool}
		if r := load1(t, c, isDone); len(r.Failures) != 0 || !strings.HasSuffix(r.Conditions.Protocol, "with TLS") {
			t.Errorf("HTTP/1.1 %v: %+v", http1, r)
		}
		c.TLS = nil
		if _, err := Run(context.Background(), c); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("an unknown authority: %v", err)
		}
		s.Close()
	}
}

func TestValidate(t *testing.T) {
	u := parse(t, "http://10.0.0.5")
	for _, edit := range []func(*Config){
		func(c *Config) { c.Targets = nil }, func(c *Config) { c.Targets[0].Scheme = "ftp" }, func(c *Config) { c.Connections = 0 },
		func(c *Config) { c.HTTP1, c.Streams = true, 2 }, func(c *Config) { c.Arrivals = &Arrivals{} }, func(c *Config) { c.Duration = 0 },
		func(c *Config) { c.Body = make([]byte, 20_000) },
	} {
		v := *u
		c := conf(&v)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		if edit(&c); c.Validate() == nil {
			t.Errorf("%+v is allowed", c)
		}
	}
}
