def test_a_wide_representation_has_the_debiased_cka_of_its_kernels():
    # Wider than the blocks in which the upper triangle of a side's own products is gathered.
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 300, generator=generator, dtype=torch.float64)
    y = x + torch.randn(60, 300, generator=generator, dtype=torch.float64)
    kernels = []
    for rows in (x, y):
        kernel = rows @ rows.T
        kernel.fill_diagonal_(0)
        means, total = kernel.sum(0) / 58, kernel.sum() / (59 * 58)
        kernels.append((kernel - means - means[:, None] + total).fill_diagonal_(0))
    expected = (kernels[0] * kernels[1]).sum() / (kernels[0].norm() * kernels[1].norm())
    assert debiased_linear_cka(x, y) == pytest.approx(float(expected), abs=1e-9)
