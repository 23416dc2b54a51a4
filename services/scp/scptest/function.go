package scptest

import (
	"cmp"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// function is a network function that serves, and keeps the last request that it answered.
type function struct {
	n    int
	stop func()

	mu      sync.Mutex // guards the following
	answers *FunctionAnswers
	last    *http.Request
	body    string
}

// listen starts a function, or gives one that serves other answers.
func (p *player) listen(n int, answers *FunctionAnswers) {
	p.t.Helper()
	if f := p.functions[n]; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.answers = answers
		return
	}
	f := &function{n: n, answers: answers}
	l, err := net.Listen("tcp", net.JoinHostPort(At(n), p.value("port"+strconv.Itoa(n))))
	if err != nil {
		p.t.Fatal(err)
	}
	web := &http.Server{Handler: f, Protocols: new(http.Protocols)}
	web.Protocols.SetUnencryptedHTTP2(true)
	all := &endings{Listener: l, open: map[*net.TCPConn]bool{}}
	go func() { _ = web.Serve(all) }()
	f.stop = all.end
	p.t.Cleanup(func() { web.Close() })
	p.functions[n] = f
}

// endings is a listener whose connections end such that the other ends know.
type endings struct {
	net.Listener
	served sync.WaitGroup

	mu   sync.Mutex // guards the following
	open map[*net.TCPConn]bool
}

// Accept returns the next connection (net.Listener).
func (e *endings) Accept() (net.Conn, error) {
	c, err := e.Listener.Accept()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open[c.(*net.TCPConn)] = true
	e.served.Add(1)
	return &ending{c.(*net.TCPConn), e}, nil
}

// end ends all connections, and waits until the other ends have closed them: a request that is
// sent meanwhile may have been served, and is not sent to another function.
func (e *endings) end() {
	e.Close()
	e.mu.Lock()
	for c := range e.open {
		_ = c.CloseWrite() // one that has ended
	}
	e.mu.Unlock()
	e.served.Wait()
}

type ending struct {
	*net.TCPConn
	of *endings
}

// Close closes the connection (net.Conn).
func (c *ending) Close() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.open[c.TCPConn] {
		delete(c.of.open, c.TCPConn)
		c.of.served.Done()
	}
	return c.TCPConn.Close()
}

// ServeHTTP answers a request (http.Handler).
func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	answers := f.answers
	if !answers.Silent {
		f.last, f.body = r, string(body)
	}
	f.mu.Unlock()
	if answers.Silent {
		<-r.Context().Done()
		return
	}
	for name, value := range answers.Header {
		w.Header().Set(name, value)
	}
	if answers.Status != 0 {
		w.WriteHeader(answers.Status)
	}
	_, _ = io.WriteString(w, answers.Body)
}

// ask sends a request to the front, and compares who got it, and how, and what is answered.
func (p *player) ask(s *Step) {
	p.t.Helper()
	for _, f := range p.functions {
		f.mu.Lock()
		f.last = nil
		f.mu.Unlock()
	}
	method, uri, _ := strings.Cut(s.Ask, " ")
	resp, text := p.wants(s, method, uri, s.Body, "")
	if !strings.Contains(text, s.Text) {
		p.t.Errorf("answered %s, want %s", text, s.Text)
	}
	compareHeader(p.t.Errorf, "the answer", resp.Header, s.Gets)
	for n, f := range p.functions {
		f.mu.Lock()
		got, body := f.last, f.body
		f.mu.Unlock()
		switch {
		case (got != nil) != (n == s.Served):
			p.t.Errorf("function %d has got it: %v, want function %d", n, got != nil, s.Served)
		case got == nil:
		case got.Method != method || got.RequestURI != cmp.Or(s.URI, uri) || body != s.Body:
			p.t.Errorf("function %d got %s %s %q", n, got.Method, got.RequestURI, body)
		default:
			header := got.Header.Clone()
			header.Set("Host", got.Host)
			compareHeader(p.t.Errorf, "the request", header, s.Sees)
		}
	}
}

// compareHeader compares headers with what they should be; nil is none.
func compareHeader(errorf func(string, ...any), of string, h http.Header, want map[string]*string) {
	for name, value := range want {
		got := h.Values(name)
		switch {
		case value == nil && got != nil:
			errorf("%s has %s: %q, want none", of, name, got)
		case value != nil && (len(got) != 1 || got[0] != *value):
			errorf("%s has %s: %q, want %q", of, name, got, *value)
		}
	}
}
