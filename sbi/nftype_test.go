package sbi

import (
	"slices"
	"testing"
)

func TestStandardTypes(t *testing.T) {
	types := Types()
	if !slices.IsSorted(types) || len(slices.Compact(slices.Clone(types))) != len(types) {
		t.Errorf("not sorted, or a type twice: %v", types)
	}
	for _, is := range append(types, "CUSTOM_OCS", "CUSTOM_5G_x") {
		if !is.Standard() || !typeForm.MatchString(string(is)) {
			t.Errorf("%s is no type", is)
		}
	}
	for _, not := range []NFType{"", "XYZ", "amf", "CUSTOM_", "CUSTOM_a b", "CUSTOMER"} {
		if not.Standard() {
			t.Errorf("%q is a type", not)
		}
	}
}
