package sbi

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Headers by which producers tell of their load (TS 29.500, 6.3 and 6.4), as http.Header
// has them.
const (
	LoadHeader     = "3gpp-Sbi-Lci"
	OverloadHeader = "3gpp-Sbi-Oci"
)

// Congested reports whether a status says that a producer has too much to do (TS 29.500, 6.4).
func Congested(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// A LoadReport is what a producer tells of its load, or of its overload.
type LoadReport struct {
	Overload bool // of 3gpp-Sbi-Oci
	Percent  int  // the load or, of an overload, the share of requests that is to go elsewhere
	At       time.Time
	Validity time.Duration // of an overload
	Instance string        // whom it is of: an instance,
	Service  string        // or a service instance of it
	Set      string        // or a set of instances or of services
	Part     LoadPart      // of some slices and data networks only; the zero LoadPart is of all
	Relative int           // percent of the capacity that there is for the part; 0: not said
	Other    bool          // it is of a callback, an SCP, a SEPP, or all services of a name
}

// A LoadPart is some slices and data networks: texts with "&" between them, in order. An
// empty text stands for all.
type LoadPart struct{ Slices, DNNs string }

// Has reports whether the part has all of some slices, and a data network. Of what is not
// known, none or "", it has only all.
func (p LoadPart) Has(list []Snssai, dnn string) bool {
	has := func(all, one string) bool { return slices.Contains(strings.Split(all, "&"), one) }
	if p.Slices != "" && (len(list) == 0 || slices.ContainsFunc(list, func(s Snssai) bool { return !has(p.Slices, s.token()) })) {
		return false
	}
	return p.DNNs == "" || dnn != "" && has(p.DNNs, strings.ToLower(dnn))
}

// token returns a slice as headers have it (TS 29.571, 5.4.4.2): 1-00abcd.
func (s Snssai) token() string {
	text := strconv.Itoa(int(s.SST))
	if s.SD != "" {
		text += "-" + strings.Repeat("0", max(0, 6-len(s.SD))) + strings.ToLower(s.SD)
	}
	return text
}

var sliceToken = regexp.MustCompile(`^[0-9]{1,3}(-[0-9a-f]{6})?$`)

// anded reads values with "&" between them.
func anded(text string) (list []string) {
	for one := range strings.SplitSeq(strings.ToLower(text), "&") {
		if one = strings.TrimSpace(one); one != "" && !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	slices.Sort(list)
	return list
}

// mostReports is how many reports of a header are read.
const mostReports = 16

// ParseLoad reads the headers 3gpp-Sbi-Lci and 3gpp-Sbi-Oci of an answer, and counts
// those of their values that are malformed.
func ParseLoad(h http.Header) (list []LoadReport, malformed int) {
	for _, name := range []string{LoadHeader, OverloadHeader} {
		n := 0
		for _, line := range h[name] {
			for _, text := range split(line, ',') {
				if n++; n > mostReports || len(text) > mostText {
					malformed++
					continue
				}
				if r, ok := parseReport(text, name == OverloadHeader); ok {
					list = append(list, r)
				} else {
					malformed++
				}
			}
		}
	}
	return list, malformed
}

// parseReport reads one value of a header. Parameters that it does not know are passed
// over.
func parseReport(text string, overload bool) (r LoadReport, ok bool) {
	r = LoadReport{Overload: overload, Percent: -1}
	seen := map[string]bool{}
	for _, item := range split(text, ';') {
		name, value, is := strings.Cut(item, ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.Trim(strings.TrimSpace(value), `"`)
		if !is || seen[name] {
			return r, false
		}
		seen[name] = true
		var err error
		switch name {
		case "timestamp":
			if r.At, err = http.ParseTime(value); err != nil {
				r.At, err = time.Parse(time.RFC3339, value)
			}
		case "load-metric", "overload-reduction-metric":
			if r.Percent, err = strconv.Atoi(strings.TrimSuffix(value, "%")); r.Percent < 0 || r.Percent > 100 || (name == "load-metric") == overload {
				return r, false
			}
		case "period-of-validity":
			var n uint64
			n, err = strconv.ParseUint(strings.TrimSuffix(value, "s"), 10, 16)
			r.Validity = time.Duration(n) * time.Second
		case "nf-instance", "nf-inst":
			if r.Instance = strings.ToLower(value); !ValidInstanceID(value) {
				return r, false
			}
		case "nf-service-instance":
			r.Service = value
		case "s-nssai":
			list := anded(value)
			if len(list) == 0 || slices.ContainsFunc(list, func(s string) bool { return !sliceToken.MatchString(s) }) {
				return r, false
			}
			r.Part.Slices = strings.Join(list, "&")
		case "dnn":
			if r.Part.DNNs = strings.Join(anded(value), "&"); r.Part.DNNs == "" {
				return r, false
			}
		case "relative-capacity":
			if r.Relative, err = strconv.Atoi(strings.TrimSuffix(value, "%")); r.Relative < 0 || r.Relative > 100 || overload {
				return r, false
			}
		case "nf-set", "nf-service-set":
			r.Set = value
		case "callback-uri", "scp-fqdn", "sepp-fqdn", "service-name":
			r.Other = true
		}
		if err != nil {
			return r, false
		}
	}
	whole := seen["timestamp"] && r.Percent >= 0 && (r.Instance != "" || r.Service != "" || r.Set != "" || r.Other)
	return r, whole && (!overload || r.Validity > 0)
}

// split cuts a text at a separator that is not in quotation marks.
func split(text string, at rune) (list []string) {
	quoted := false
	for item := range strings.FieldsFuncSeq(text, func(c rune) bool {
		if c == '"' {
			quoted = !quoted
		}
		return c == at && !quoted
	}) {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}
