package contracts_test

import (
	"testing"

	"pawl/activities/actest"
)

func TestMain(m *testing.M) { actest.Main(m) }
