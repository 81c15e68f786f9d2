package record_test

import (
	"testing"

	"pawl/test/harness/actest"
)

func TestMain(m *testing.M) { actest.Main(m) }
