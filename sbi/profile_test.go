package sbi

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// udm returns the profile of testdata/udm.json, changed by edits.
func udm(t testing.TB, edits ...func(*NFProfile)) *NFProfile {
	t.Helper()
	b, err := os.ReadFile("testdata/udm.json")
	if err != nil {
		t.Fatal(err)
	}
	p := &NFProfile{}
	if err := json.Unmarshal(b, p); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

// sameJSON reports whether two texts say the same, numbers to the last digit.
func sameJSON(t testing.TB, a, b []byte) bool {
	t.Helper()
	x, err := valueOf(a)
	y, err2 := valueOf(b)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return reflect.DeepEqual(x, y)
}

func TestProfileIsKept(t *testing.T) {
	p := udm(t)
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	if p.NFType != UDM || *p.Priority != 0 || p.SNSSAIs[1].SDRanges[0].End != "00001F" || *p.NFServices[0].IPEndPoints[0].Port != 7777 {
		t.Errorf("read %+v", p)
	}
	before, _ := os.ReadFile("testdata/udm.json")
	after, err := json.Marshal(p)
	if err != nil || !sameJSON(t, before, after) {
		t.Errorf("%v: became %s", err, after)
	}
}

func TestDecodeNamesTheMember(t *testing.T) {
	for text, want := range map[string]string{
		`{"nfInstanceId": 7}`: "400 OPTIONAL_IE_INCORRECT: /nfInstanceId: want a string",
		`{"load": "7"}`:       "400 OPTIONAL_IE_INCORRECT: /load: want an integer",
		`{"nfServices": {}}`:  "400 OPTIONAL_IE_INCORRECT: /nfServices: want an array",
		`{"nfServiceList": {"a/b": {"ipEndPoints": [{}, {"port": 1.5}]}}}`: "400 OPTIONAL_IE_INCORRECT: /nfServiceList/a~1b/ipEndPoints/1/port: want an integer",
		`{"sNssais": [{"sst": 256}]}`:                                      "400 OPTIONAL_IE_INCORRECT: /sNssais/0/sst: want an integer",
		`[]`:                                                               "400 INVALID_MSG_FORMAT",
		`{"nfType": null, "NFTYPE": "AMF"}`:                                "", // names are exact, and null is absent
	} {
		p := &NFProfile{}
		err := json.Unmarshal([]byte(text), p)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if p.NFType != "" {
			t.Errorf("%s: type %s", text, p.NFType)
		}
	}
}

func TestCheck(t *testing.T) {
	long := slices.Repeat([]string{"10.0.0.1"}, 129)
	negative := -1
	for want, edit := range map[string]func(*NFProfile){
		"":                                        func(p *NFProfile) { p.NFServices, p.NFServiceList = nil, map[string]NFService{} },
		"MISSING: /nfInstanceId:":                 func(p *NFProfile) { p.NFInstanceID = "" },
		"INCORRECT: /nfInstanceId:":               func(p *NFProfile) { p.NFInstanceID = "../../x" },
		"INCORRECT: /nfType:":                     func(p *NFProfile) { p.NFType = "A F" },
		"MISSING: /nfStatus:":                     func(p *NFProfile) { p.NFStatus = "" },
		"MISSING: /ipv4Addresses:":                func(p *NFProfile) { p.IPv4Addresses = nil },
		"INCORRECT: /ipv4Addresses:":              func(p *NFProfile) { p.IPv4Addresses = long },
		"/ipv4Addresses/1: want":                  func(p *NFProfile) { p.IPv4Addresses = []string{"10.0.0.1", "::1"} },
		"/ipv6Addresses/0: want":                  func(p *NFProfile) { p.IPv6Addresses = []string{"fe80::1%eth0"} },
		"/fqdn: want a name":                      func(p *NFProfile) { p.FQDN = "nrf" },
		"/capacity: want 0 to 65535":              func(p *NFProfile) { p.Capacity = &negative },
		"/plmnList/0/mnc: is missing":             func(p *NFProfile) { p.PLMNList = []PlmnID{{MCC: "001"}} },
		"/sNssais/0/sd: want six":                 func(p *NFProfile) { p.SNSSAIs = []Snssai{{SST: 1, SD: "x"}} },
		"/allowedNfTypes: want one or more":       func(p *NFProfile) { p.AllowedNFTypes = []NFType{} },
		"/allowedNfDomains/0: want a regular":     func(p *NFProfile) { p.AllowedNFDomains = []string{"("} },
		"/nfServices/1/scheme: want http":         func(p *NFProfile) { p.NFServices[1].Scheme = "ftp" },
		"/nfServices/1/versions: is missing":      func(p *NFProfile) { p.NFServices[1].Versions = nil },
		"/nfServices/0/ipEndPoints/0: want":       func(p *NFProfile) { p.NFServices[0].IPEndPoints[0].IPv6Address = "::1" },
		"/nfServices/0/ipEndPoints/0/transport: ": func(p *NFProfile) { p.NFServices[0].IPEndPoints[0].Transport = "UDP" },
		"/nfServices/0/apiPrefix: want a path":    func(p *NFProfile) { p.NFServices[0].APIPrefix = "http://x" },
		"/nfServiceList/k/serviceInstanceId: ":    func(p *NFProfile) { p.NFServiceList = map[string]NFService{"k": p.NFServices[0]} },
	} {
		err := udm(t, edit).Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	err := (&NFProfile{}).Check()
	if p := ProblemOf(err); len(p.InvalidParams) != 4 || p.Cause != MandatoryMemberMissing || p.Status != 400 {
		t.Errorf("of nothing: %v, want four parameters", err)
	}
}

func TestEndPoints(t *testing.T) {
	var got []string
	for _, e := range udm(t, func(p *NFProfile) { p.IPv6Addresses = []string{"2001:db8::5"} }).EndPoints() {
		got = append(got, e.Service+" "+e.Addr.String())
		if want := map[string]int{"nudm-sdm": 3, "nudm-uecm": 0}[e.Service]; e.Priority != want || e.Capacity != 100 {
			t.Errorf("%+v: want priority %d", e, want)
		}
	}
	if want := []string{"nudm-sdm 10.0.0.5:7777", "nudm-uecm 10.0.0.5:443", "nudm-uecm [2001:db8::5]:443"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	p := udm(t, func(p *NFProfile) {
		p.NFServiceList = map[string]NFService{"sdm-1": p.NFServices[0], "b": {ServiceName: "nudm-ee"}, "a": {ServiceName: "nudm-pp"}}
	})
	var names []string
	for _, s := range p.Services() {
		names = append(names, s.ServiceName)
	}
	if want := []string{"nudm-sdm", "nudm-uecm", "nudm-ueau", "nudm-pp", "nudm-ee"}; !slices.Equal(names, want) {
		t.Errorf("services %q, want %q", names, want)
	}
	if a := p.Addresses(); len(a) != 1 || a[0].String() != "10.0.0.5" {
		t.Errorf("addresses %v", a)
	}
}

func FuzzProfile(f *testing.F) {
	b, _ := os.ReadFile("testdata/udm.json")
	f.Add(b)
	for _, text := range []string{`{}`, `{"nfServiceList":{}}`, `{"nfServices":[null]}`, `{"sNssais":[{"sst":-1}]}`, `{"ipv4Addresses":[1]}`, "{\"\xff\":1}", `{"x":1,"x":2}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &NFProfile{}
		if DefaultLimits.Check(b) != nil || json.Unmarshal(b, p) != nil {
			return
		}
		checked := p.Check()
		p.EndPoints()
		p.Addresses()
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		q := &NFProfile{}
		if err := json.Unmarshal(again, q); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if twice, _ := json.Marshal(q); string(twice) != string(again) {
			t.Fatalf("%s, then %s", again, twice)
		}
		if (q.Check() == nil) != (checked == nil) {
			t.Fatalf("%v, then %v", checked, q.Check())
		}
	})
}
