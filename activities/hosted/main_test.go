package hosted_test

import (
	"testing"

	"pawl/test/actest"
)

func TestMain(m *testing.M) { actest.Main(m) }
