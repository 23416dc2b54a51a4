package sbi

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Query is what a discovery asks for.
type Query struct {
	TargetNFType       NFType
	Requester          Requester
	ServiceNames       []string // any of them; none: all services
	TargetInstanceID   string
	TargetInstanceIDs  []string
	TargetFQDN         string
	TargetPLMNs        []PlmnID // any of them
	SNSSAIs            []Snssai // any of them
	TargetSetID        string
	TargetServiceSetID string
	PreferredLocality  string // is preferred, others are found, too
	Limit              int    // 0: no limit
	// Ignored are the parameters that ParseQuery does not know.
	Ignored []string
}

// A Requester is who asks, as far as it says.
type Requester struct {
	NFType     NFType
	InstanceID string
	FQDN       string
	PLMNs      []PlmnID // none: that of the NRF
	SNSSAIs    []Snssai
}

// Complete adds to a requester what it has registered and does not say.
func (r *Requester) Complete(p *NFProfile) {
	if r.FQDN == "" {
		r.FQDN = p.FQDN
	}
	if len(r.PLMNs) == 0 {
		r.PLMNs = p.PLMNList
	}
	if len(r.SNSSAIs) > 0 {
		return
	}
	if r.SNSSAIs = p.SNSSAIs; len(p.PerPLMNSNSSAIs) > 0 {
		r.SNSSAIs = nil
		for _, x := range p.PerPLMNSNSSAIs {
			r.SNSSAIs = append(r.SNSSAIs, x.SNSSAIs...)
		}
	}
}

// ParseQuery reads the query of a discovery request. It lists the parameters that it
// does not know in Ignored (TS 29.500, 5.2.9). The error is a ProblemDetails; the query
// has the parameters that are correct even then.
func ParseQuery(values url.Values) (*Query, error) {
	q := &Query{}
	r := &queryReader{values: values}
	q.TargetNFType = NFType(r.mandatory("target-nf-type", typeForm.MatchString, "want a type such as AMF"))
	q.Requester.NFType = NFType(r.mandatory("requester-nf-type", typeForm.MatchString, "want a type such as AMF"))
	id, short := ValidInstanceID, func(s string) bool { return len(s) <= mostText }
	q.Requester.InstanceID = r.text("requester-nf-instance-id", id, "want a UUID")
	q.Requester.FQDN = r.text("requester-nf-instance-fqdn", short, "is too long")
	q.TargetInstanceID = r.text("target-nf-instance-id", id, "want a UUID")
	q.TargetInstanceIDs = r.list("target-nf-instance-id-list", id, "want UUIDs")
	q.TargetFQDN = r.text("target-nf-fqdn", short, "is too long")
	q.ServiceNames = r.list("service-names", nameForm.MatchString, "want names such as nudm-sdm")
	q.TargetSetID = r.text("target-nf-set-id", short, "is too long")
	q.TargetServiceSetID = r.text("target-nf-service-set-id", short, "is too long")
	q.PreferredLocality = r.text("preferred-locality", short, "is too long")
	q.TargetPLMNs = readItems(r, "target-plmn-list", (*wrong).plmn)
	q.Requester.PLMNs = readItems(r, "requester-plmn-list", (*wrong).plmn)
	q.SNSSAIs = readItems(r, "snssais", (*wrong).slice)
	q.Requester.SNSSAIs = readItems(r, "requester-snssais", (*wrong).slice)
	if text := r.text("limit", func(s string) bool { n, err := strconv.Atoi(s); return err == nil && n > 0 }, "want a number of 1 or more"); text != "" {
		q.Limit, _ = strconv.Atoi(text) // checked
	}
	for _, name := range sortedKeys(values) {
		if !slices.Contains(r.known, name) {
			q.Ignored = append(q.Ignored, name)
		}
	}
	return q, r.wrong.problem()
}

// queryReader reads parameters one by one.
type queryReader struct {
	values url.Values
	known  []string
	wrong  wrong
}

func (r *queryReader) get(name string) string {
	r.known = append(r.known, name)
	return r.values.Get(name)
}

func (r *queryReader) mandatory(name string, ok func(string) bool, want string) string {
	text := r.get(name)
	if text == "" {
		r.wrong.add(MandatoryParameterMissing, "query "+name, "is missing")
	} else if !ok(text) {
		r.wrong.add(MandatoryParameterIncorrect, "query "+name, want)
	}
	return text
}

func (r *queryReader) text(name string, ok func(string) bool, want string) string {
	text := r.get(name)
	if text != "" && !ok(text) {
		r.bad(name, want)
	}
	return text
}

func (r *queryReader) bad(name, want string) {
	r.wrong.add(OptionalParameterIncorrect, "query "+name, want)
}

// list reads items with commas between them; clients that repeat the parameter
// instead are understood, too.
func (r *queryReader) list(name string, ok func(string) bool, want string) []string {
	r.known = append(r.known, name)
	var items []string
	for _, text := range r.values[name] {
		for item := range strings.SplitSeq(text, ",") {
			if item == "" {
				continue
			}
			if items = append(items, item); !ok(item) || len(items) > mostItems {
				r.bad(name, want)
				return nil
			}
		}
	}
	return items
}

// readItems reads a parameter that is a JSON array, or one item of it.
func readItems[T any](r *queryReader, name string, check func(w *wrong, at string, item T)) []T {
	text := strings.TrimSpace(r.get(name))
	if text == "" {
		return nil
	}
	if strings.HasPrefix(text, "{") {
		text = "[" + text + "]"
	}
	var items []T
	var w wrong
	if err := DefaultLimits.Check([]byte(text)); err != nil {
		r.bad(name, "want a JSON array")
		return nil
	}
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		r.bad(name, "want a JSON array of such objects")
		return nil
	}
	each(&w, "", items, func(at string, item T) { check(&w, at, item) })
	if w.first != nil {
		i := w.first.InvalidParams[0]
		r.bad(name, i.Param+" "+i.Reason)
	}
	return items
}

// Values returns the query as a request has it. What has been ignored is not in it.
func (q *Query) Values() url.Values {
	v := url.Values{}
	put := func(name, text string) {
		if text != "" {
			v.Set(name, text)
		}
	}
	put("target-nf-type", string(q.TargetNFType))
	put("requester-nf-type", string(q.Requester.NFType))
	put("requester-nf-instance-id", q.Requester.InstanceID)
	put("requester-nf-instance-fqdn", q.Requester.FQDN)
	put("target-nf-instance-id", q.TargetInstanceID)
	put("target-nf-instance-id-list", strings.Join(q.TargetInstanceIDs, ","))
	put("target-nf-fqdn", q.TargetFQDN)
	put("service-names", strings.Join(q.ServiceNames, ","))
	put("target-nf-set-id", q.TargetSetID)
	put("target-nf-service-set-id", q.TargetServiceSetID)
	put("preferred-locality", q.PreferredLocality)
	put("target-plmn-list", itemsText(q.TargetPLMNs))
	put("requester-plmn-list", itemsText(q.Requester.PLMNs))
	put("snssais", itemsText(q.SNSSAIs))
	put("requester-snssais", itemsText(q.Requester.SNSSAIs))
	if q.Limit > 0 {
		put("limit", strconv.Itoa(q.Limit))
	}
	return v
}

func itemsText[T any](items []T) string {
	if len(items) == 0 {
		return ""
	}
	b, _ := json.Marshal(items) // strings and numbers
	return string(b)
}
