// Package scptest is the conformance suite of scp's front: it reads cases of testdata/conformance
// and plays them on a front and an NRF that a test gives it. In these cases network
// functions at 127.0.1.N register, discover and send each other requests, and each says what it
// must get.
//
// Tests of this module and of bench import it, nothing else does.
package scptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A Case is what network functions send, one step after the other, and what they must get.
//
// In its text {at5} is the address of the fifth function, {id5} its instance, and {port5} the
// port at which it listens, a number where that is all of a text. {front} is ADDRESS:PORT of
// the front, {nrf} the API root of the NRF, and {vip} ADDRESS:PORT of the VIP of the last step
// vip.
type Case struct {
	File       string                  `json:"-"` // without its extension
	Name       string                  `json:"name"`
	NRFs       []string                `json:"nrfs"`       // the manners of the NRF, or "nf" for weft nf nrf; none: all
	Names      map[string][]netip.Addr `json:"names"`      // scp.names
	Registrars []netip.Prefix          `json:"registrars"` // scp.registrars
	Steps      []json.RawMessage       `json:"steps"`      // each a Step
}

// A Step is one thing that a function or somebody else does: which one is the member that is set.
type Step struct {
	From   int               `json:"from"` // which function does it
	As     int               `json:"as"`   // for which instance; 0: its own
	Put    json.RawMessage   `json:"put"`
	Octets bool              `json:"octets"` // put is a string, the body
	Header map[string]string `json:"header"`
	Patch  json.RawMessage   `json:"patch"`
	Delete int               `json:"delete"`
	Find   string            `json:"find"` // the query of a discovery
	Want   int               `json:"want"` // status; 0: 2xx
	Found  []Found           `json:"found"`
	Text   string            `json:"text"` // that an answer of another status contains

	Listen  int             `json:"listen"`  // this function serves at {at}:{port}, in the manner of answers
	Answers FunctionAnswers `json:"answers"` // of listen
	Stop    int             `json:"stop"`    // this function serves no more
	Ask     string          `json:"ask"`     // METHOD URI of a request to the front
	Body    string          `json:"body"`
	Served  int             `json:"served"` // the function that must answer it; 0: none
	URI     string          `json:"uri"`    // that it must get; empty: that of ask
	// Sees are headers of the request as that function must get it, and Gets those of the answer;
	// null is none.
	Sees map[string]*string `json:"sees"`
	Gets map[string]*string `json:"gets"`

	Host       []int      `json:"host"`   // these functions are at the port of the first
	Later      int        `json:"later"`  // seconds
	Survey     bool       `json:"survey"` // the NRF is asked for its instances
	NRFForgets int        `json:"nrf_forgets"`
	Vip        string     `json:"vip"`
	Members    []Member   `json:"members"`
	Drain      int        `json:"drain"`
	Forget     int        `json:"forget"`
	Restart    bool       `json:"restart"`     // the process with scp
	NRFAnswers *NRFAnswer `json:"nrf_answers"` // to discoveries, from now on
	Known      []Known    `json:"known"`       // all that weft scp get shows
}

// Found is what a consumer must get of an instance.
type Found struct {
	Of    string                     `json:"of"`  // an instance id; empty: an end point
	Has   map[string]json.RawMessage `json:"has"` // by JSON pointer
	Lacks []string                   `json:"lacks"`
	Text  string                     `json:"text"` // that its octets contain
}

// Member is what a VIP must have.
type Member struct {
	At     string `json:"at"`
	State  string `json:"state"`
	Weight uint32 `json:"weight"` // 0: any
}

// Known is what weft scp get must show of an instance.
type Known struct {
	Instance string `json:"instance"`
	State    string `json:"state"`   // empty: up
	WhyNot   string `json:"why_not"` // begins so; empty: it is balanced
	Age      uint32 `json:"age"`
}

// NRFAnswer is an answer of an NRF that is always the same.
type NRFAnswer struct {
	Status   int    `json:"status"`
	Location string `json:"location"`
	Encoding string `json:"encoding"`
	Body     string `json:"body"`
}

// FunctionAnswers is how a function answers all requests.
type FunctionAnswers struct {
	Status int               `json:"status"` // 0: 200
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
	Silent bool              `json:"silent"` // not at all
}

// Read returns the cases of testdata/conformance under a folder, that of services/scp. What
// the format does not have is an error.
func Read(t *testing.T, folder string) (all []*Case) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "testdata", "conformance", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		var cases []*Case
		readFile(t, file, &cases)
		for _, c := range cases {
			c.File = strings.TrimSuffix(filepath.Base(file), ".json")
			for i := range c.Steps {
				if _, err := c.step(i, func(string) string { return "1" }); err != nil {
					t.Fatalf("%s: %q: step %d: %v", file, c.Name, i+1, err)
				}
			}
		}
		all = append(all, cases...)
	}
	return all
}

// Placeholders: those of functions, and those that only a running case knows.
var (
	numbered    = regexp.MustCompile(`\{(at|id)([0-9]+)\}`)
	placeholder = regexp.MustCompile(`"\{port[0-9]+\}"|\{(?:port[0-9]+|front|nrf|vip)\}`)
)

// readFile reads a file of JSON, with the addresses and ids of functions.
func readFile(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = strict(numbered.ReplaceAllFunc(text, func(found []byte) []byte {
			m := numbered.FindSubmatch(found)
			n, _ := strconv.Atoi(string(m[2]))
			if string(m[1]) == "at" {
				return []byte(At(n))
			}
			return []byte(ID(n))
		}), into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// strict decodes JSON without unknown members.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// For reports whether the case is for an NRF of a manner.
func (c *Case) For(manner string) bool { return len(c.NRFs) == 0 || slices.Contains(c.NRFs, manner) }

// Simulated reports whether the case needs a Simulation: it has time pass, asks the NRF at a
// certain time, or says what the NRF answers.
func (c *Case) Simulated() bool {
	for i := range c.Steps {
		s, err := c.step(i, func(string) string { return "1" })
		if err != nil || s.Later != 0 || s.Survey || s.NRFAnswers != nil {
			return true
		}
	}
	return false
}

// step returns the step of a number, with the values of its placeholders.
func (c *Case) step(i int, value func(name string) string) (s *Step, err error) {
	text := placeholder.ReplaceAllStringFunc(string(c.Steps[i]), func(found string) string {
		return value(strings.Trim(found, `"{}`))
	})
	s = &Step{}
	return s, strict([]byte(text), s)
}

// At returns the address of the n-th network function.
func At(n int) string { return fmt.Sprintf("127.0.1.%d", n) }

// ID returns the instance id of the n-th network function.
func ID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }
