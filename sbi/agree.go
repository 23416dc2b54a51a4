package sbi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// additive are the lists in profiles and services whose items stand for themselves: an
// end point offers an item if one of its instances does.
var additive = []string{"sNssais", "plmnList", "snpnList", "defaultNotificationSubscriptions"}

// Agreed returns the members that one profile, or service, for several may have: a
// value that is the same in all; the items that all lists have, or, of additive lists
// and those in amfInfo and its like, the items of any; the features that all support.
// It returns nil if there are none.
func Agreed(all []Unknown) Unknown {
	agreed := Unknown{}
	names := map[string]bool{}
	for _, members := range all {
		for name := range members {
			names[name] = true
		}
	}
	for name := range names {
		texts := make([]json.RawMessage, len(all))
		for i, members := range all {
			texts[i] = members[name]
		}
		if text := agree(name, texts, isInfo(name) || slices.Contains(additive, name)); text != nil {
			agreed[name] = text
		}
	}
	if len(agreed) == 0 {
		return nil
	}
	return agreed
}

// mostCompared bounds the texts of a member that are compared, in octets together.
// Larger ones that differ are left out.
const mostCompared = 2 << 20

// agree returns what Agreed has of one member, nil if that is nothing. With adds, its
// lists are additive.
func agree(name string, texts []json.RawMessage, adds bool) json.RawMessage {
	if name == "defaultNotificationSubscriptions" { // not to have one is to lack it
		texts = slices.DeleteFunc(slices.Clone(texts), func(t json.RawMessage) bool { return t == nil || string(t) == "null" || string(t) == "[]" })
	}
	if len(texts) == 0 {
		return nil
	}
	same := true
	for _, t := range texts {
		if t == nil || string(t) == "null" {
			return nil
		}
		same = same && bytes.Equal(t, texts[0])
	}
	if same {
		return texts[0]
	}
	values, size := make([]any, len(texts)), 0
	for i, t := range texts {
		if size += len(t); size > mostCompared {
			return nil
		}
		v, err := valueOf(t)
		if err != nil {
			return nil
		}
		values[i] = v
	}
	if name == "supportedFeatures" {
		return features(values)
	}
	v := commonValue(values, adds)
	if v == nil {
		return nil
	}
	text, _ := json.Marshal(v) // has been JSON
	return text
}

// commonValue returns what several values have in common, nil if that is nothing.
func commonValue(values []any, adds bool) any {
	first := canonical(values[0])
	if !slices.ContainsFunc(values, func(v any) bool { return canonical(v) != first }) {
		return values[0]
	}
	switch values[0].(type) {
	case map[string]any:
		return commonMembers(values, adds)
	case []any:
		return commonItems(values, adds)
	}
	return nil
}

func commonMembers(values []any, adds bool) any {
	object := map[string]any{}
	for name := range values[0].(map[string]any) {
		var of []any
		for _, v := range values {
			o, ok := v.(map[string]any)
			if item, there := o[name]; ok && there {
				of = append(of, item)
			}
		}
		if len(of) < len(values) {
			continue
		}
		if v := commonValue(of, adds); v != nil {
			object[name] = v
		}
	}
	if len(object) == 0 {
		return nil
	}
	return object
}

func commonItems(values []any, adds bool) any {
	count, texts := map[string]int{}, []string{}
	for _, v := range values {
		list, ok := v.([]any)
		if !ok || len(list) == 0 { // a list without items is as none
			return nil
		}
		own := map[string]bool{}
		for _, item := range list {
			if text := canonical(item); !own[text] {
				own[text] = true
				if count[text]++; count[text] == 1 {
					texts = append(texts, text)
				}
			}
		}
	}
	var items []any
	for _, text := range texts {
		if adds || count[text] == len(values) {
			items = append(items, json.RawMessage(text))
		}
	}
	if len(items) == 0 {
		return nil
	}
	return items
}

// canonical returns the text of a value, the same for the same values.
func canonical(v any) string {
	b, _ := json.Marshal(v) // has been JSON
	return string(b)
}

// features returns the features that all support, of bit masks in hexadecimal digits
// (TS 29.571, SupportedFeatures).
func features(masks []any) json.RawMessage {
	all := ""
	for i, m := range masks {
		mask, ok := m.(string)
		if !ok {
			return nil
		}
		if i == 0 {
			all = mask
			continue
		}
		both := []byte{}
		for k := 1; k <= min(len(all), len(mask)); k++ {
			a, err1 := strconv.ParseUint(all[len(all)-k:len(all)-k+1], 16, 8)
			b, err2 := strconv.ParseUint(mask[len(mask)-k:len(mask)-k+1], 16, 8)
			if err1 != nil || err2 != nil {
				return nil
			}
			both = append(both, strconv.FormatUint(a&b, 16)[0])
		}
		slices.Reverse(both)
		all = string(both)
	}
	if all = strings.TrimLeft(all, "0"); all == "" {
		return nil
	}
	text, _ := json.Marshal(all) // a string
	return text
}

// isInfo reports whether a member is one such as udmInfo.
func isInfo(name string) bool {
	return strings.HasSuffix(name, "Info") || strings.HasSuffix(name, "InfoList") || strings.HasSuffix(name, "InfoExt")
}

// sets are the members of amfInfo and its like that name the group of subscribers, or
// the set of instances, of an instance. Members that end with Ranges do so, too.
var sets = []string{"groupId", "routingIndicators", "amfSetId", "amfRegionId"}

// Serves returns the part of the subscribers that an instance serves; empty if it
// serves all. Instances that differ in it cannot replace each other.
func (p *NFProfile) Serves() map[string]string {
	whom := map[string]string{}
	for name, text := range p.Unknown {
		if v, err := valueOf(text); err == nil && isInfo(name) {
			addServed(whom, name, v)
		}
	}
	return whom
}

// addServed adds the part of the subscribers that one member of a profile names.
func addServed(whom map[string]string, at string, v any) {
	of, _ := v.(map[string]any)
	for name, v := range of {
		text, isText := v.(string)
		items, isList := v.([]any)
		switch {
		case slices.Contains(sets, name) && isText && text != "", (slices.Contains(sets, name) || strings.HasSuffix(name, "Ranges") || strings.HasSuffix(name, "RangeList")) && isList && len(items) > 0:
			whom[at+"/"+name] = canonical(v)
		case !isList:
			addServed(whom, at+"/"+name, v)
		}
	}
}
